import { expect, it } from 'vitest';
import { steadyClock } from './clock.js';

it('goes on evenly while the time of day is moved, and takes it up when it is told to', () => {
  const time = { ofDay: 1_800_000_000_000, elapsed: 500 };
  const clock = steadyClock({ timeOfDay: () => time.ofDay, elapsed: () => time.elapsed });
  time.ofDay += 10;
  time.elapsed += 10;
  expect(clock.now()).toBe(1_800_000_000_010);
  time.ofDay += 3_600_000;
  expect(clock.now()).toBe(1_800_000_000_010);
  expect(clock.resync()).toBe(3_600_000);
  expect(clock.now()).toBe(1_800_003_600_010);
  time.ofDay -= 7_200_000;
  time.elapsed += 5;
  expect(clock.now()).toBe(1_800_003_600_015);
  expect(clock.resync()).toBe(-7_200_005);
  expect(clock.resync()).toBe(0);
});
