import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { model, nodes } from './testing/readme-example.js';
import { runOnnx } from './testing/run-onnx.js';

describe('the example of the README', () => {
  it('is the one that is tested here', () => {
    const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
    const example = readFileSync(new URL('./testing/readme-example.ts', import.meta.url), 'utf8');
    expect(readme).toContain(`\`\`\`ts\n${example}\`\`\``);
  });

  it('computes the loss and its gradient', async () => {
    const tensor = (shape: readonly number[], ...data: number[]) =>
      ({ dtype: 'float32', shape, data: Float64Array.from(data) }) as const;
    const feeds = { x: tensor([2, 3], 1, 0, 2, 0, 1, 1), y: tensor([2, 1], 1, 0), weight: tensor([3, 1], 1, 2, 3) };
    const { loss, grad } = await runOnnx(model, feeds); // errors: 7 − 1 = 6 and 5 − 0 = 5
    expect([...loss!.data]).toEqual([61]);
    expect([...grad!.data]).toEqual([12, 10, 34]);
    expect(nodes).toEqual(['MatMul', 'Sub', 'Mul', 'ReduceSum']);
  });
});
