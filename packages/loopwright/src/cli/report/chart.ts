/** A curve as SVG: without scripts, so that the page needs none. */
import { numberText } from '../runs/text.js';
import { html } from './html.js';
import { ticksOf } from './scale.js';

export interface Point {
  readonly step: number;
  readonly value: number;
  /** Bounds, such as those of an interval. */
  readonly low?: number;
  readonly high?: number;
}

const width = 360;
const height = 150;
const margin = { left: 52, right: 10, top: 10, bottom: 22 };
/** More can't be told apart on a screen. */
const maxPoints = 600;

/** The curve of one metric over steps, with the band of its bounds where it has them, named by what lies in it. */
export function chart(name: string, all: readonly Point[], between = ''): string {
  const points = thinned(all);
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return '';
  const numbers = points.flatMap(({ value, low = value, high = value }) => [value, low, high]);
  const ticks = ticksOf(Math.min(...numbers), Math.max(...numbers));
  const [bottom, top] = [ticks[0]?.value ?? 0, ticks.at(-1)?.value ?? 1];
  const span = last.step - first.step || 1;
  const x = (step: number): string =>
    (margin.left + ((step - first.step) / span) * (width - margin.left - margin.right)).toFixed(1);
  const y = (value: number): string =>
    (height - margin.bottom - ((value - bottom) / (top - bottom)) * (height - margin.top - margin.bottom)).toFixed(1);
  const line = points.map(({ step, value }) => `${x(step)},${y(value)}`).join(' ');
  const banded = points.filter(({ low, high }) => low !== undefined && high !== undefined);
  const band = [
    ...banded.map((p) => `${x(p.step)},${y(p.high ?? p.value)}`),
    ...banded.toReversed().map((p) => `${x(p.step)},${y(p.low ?? p.value)}`),
  ].join(' ');
  const grid = ticks
    .map(
      ({ value, text }) =>
        `<line class="grid" x1="${margin.left}" x2="${width - margin.right}" y1="${y(value)}" y2="${y(value)}"/><text class="y" x="${margin.left - 6}" y="${y(value)}">${text}</text>`,
    )
    .join('');
  const dots =
    points.length > 120
      ? ''
      : points
          .map(
            (p) =>
              `<circle cx="${x(p.step)}" cy="${y(p.value)}" r="2.5"><title>step ${p.step}: ${numberText(p.value)}</title></circle>`,
          )
          .join('');
  const told = `${name}: ${numberText(first.value)} at step ${first.step}, ${numberText(last.value)} at step ${last.step}`;
  return `<figure><figcaption><span>${html(name)}${banded.length === 0 ? '' : ` <i>${between}</i>`}</span> <b>${numberText(last.value)}</b></figcaption><svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${html(told)}">${grid}<text class="x" x="${margin.left}" y="${height - 6}">${first.step}</text><text class="x end" x="${width - margin.right}" y="${height - 6}">${last.step}</text>${banded.length > 0 ? `<polygon class="band" points="${band}"/>` : ''}<polyline class="curve" points="${line}"/>${dots}</svg></figure>`;
}

/** The least and the greatest of each stretch of steps, so that no peak is lost. */
function thinned(points: readonly Point[]): readonly Point[] {
  if (points.length <= maxPoints) return points;
  const size = Math.ceil((2 * points.length) / maxPoints);
  const kept: Point[] = [];
  for (let at = 0; at < points.length; at += size) {
    const part = points.slice(at, at + size).toSorted((a, b) => a.value - b.value);
    kept.push(...new Set([part[0]!, part.at(-1)!])); // true: no part is empty
  }
  return kept.toSorted((a, b) => a.step - b.step);
}
