import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { opTable } from './registry.js';

const fileOf = (op: string) => op.replaceAll(/(?<!^)[A-Z]/g, (letter) => `-${letter}`).toLowerCase();

describe('the table of operations', () => {
  for (const op of Object.keys(opTable)) {
    it(`has ${op} in a file of its own with a test beside it`, () => {
      for (const ending of ['.ts', '.test.ts'])
        expect(existsSync(new URL(`${fileOf(op)}${ending}`, import.meta.url))).toBe(true);
    });
  }
});
