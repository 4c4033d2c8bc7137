/** How fast the runtime multiplies matrices here: for checks of a machine, before any model is loaded. */
import { availableParallelism } from 'node:os';
import { compile, Graph, matMul } from '@loopwright/graph';
import { Compiled, loadRuntime, TensorFactory } from './ort/runtime.js';

export interface RuntimeProbe {
  /** Time to load the native library. */
  readonly loadMs: number;
  /** Billions of floating-point operations a second, best of three products. */
  readonly gflops: number;
  readonly threads: number;
}

/**
 * Loads the runtime and multiplies two square matrices of random numbers.
 *
 * @throws `unsupported_host`, `engine_failed`, `out_of_memory`
 */
export async function probeRuntime({
  threads = Math.min(8, availableParallelism()),
  size = 768,
}: {
  readonly threads?: number;
  readonly size?: number;
} = {}): Promise<RuntimeProbe> {
  const start = performance.now();
  const tensors = new TensorFactory(await loadRuntime());
  const loadMs = performance.now() - start;
  const graph = new Graph();
  const product = matMul(graph.input('left', 'float32', [size, size]), graph.input('right', 'float32', [size, size]));
  await using compiled = await Compiled.load(compile(graph, { product }), { threads });
  const matrix = () => tensors.float(Float32Array.from({ length: size * size }, Math.random), [size, size]);
  const feeds = { left: matrix(), right: matrix() };
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 4; run++) {
    const before = performance.now();
    await compiled.run(feeds, ['product']);
    if (run > 0) best = Math.min(best, performance.now() - before); // the first run of a shape is slow
  }
  return { loadMs, gflops: (2 * size ** 3) / (best * 1e6), threads };
}
