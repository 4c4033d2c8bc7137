/** Works of the sandboxes: many small programs at once, as a step of training on code brings them. */
import { createJavaScriptSandbox, createPythonSandbox, type SandboxProgram, type SandboxResult } from 'loopwright';
import { emit, median } from './report.js';

const timeoutMs = 2000;

/**
 * COUNT small programs, all asked for at once: programs a second, waits, how they ended. Of each 50 one never ends and one fills its memory;
 * the others compute something small, by calls or by input and output.
 */
export async function sandbox(count: number, workers: number, language: 'python' | 'javascript'): Promise<void> {
  const options = { workers, timeoutMs, memoryMiB: 128 };
  const createdAt = performance.now();
  await using place =
    language === 'python' ? await createPythonSandbox(options) : await createJavaScriptSandbox(options);
  await place.run({ code: '' });
  const createSeconds = (performance.now() - createdAt) / 1000;

  const programs = Array.from({ length: count }, (_, i) => programOf(i, language));
  const begunAt = performance.now();
  const results = await Promise.all(programs.map((program) => place.run(program)));
  const seconds = (performance.now() - begunAt) / 1000;

  const wrong = results.filter((result, i) => !isAsExpected(result, i)).length;
  const quick = results.filter(({ status }) => status === 'ok').map(({ durationMs }) => durationMs);
  const waits = results.map(({ queueMs }) => queueMs / 1000);
  emit(
    {
      work: `sandbox ${language} ${count}`,
      peer: 'loopwright sandbox',
      value: count / seconds,
      unit: 'programs/s',
      seconds,
      create_s: createSeconds,
      wait_median_s: median(waits),
      wait_p90_s: percentile(waits, 0.9),
      run_median_ms: median(quick),
      run_p90_ms: percentile(quick, 0.9),
      killed_at_deadline: results.filter(({ status }) => status === 'timeout').length,
      out_of_memory: results.filter(({ status }) => status === 'out_of_memory').length,
      ended_otherwise_than_expected: wrong,
    },
    { threads: workers, clock: 'wall' },
  );
}

/** What becomes of the i-th program. */
function kindOf(i: number): 'endless' | 'memory' | 'calls' | 'input' {
  if (i % 50 === 17) return 'endless';
  if (i % 50 === 34) return 'memory';
  return i % 2 === 0 ? 'calls' : 'input';
}

function programOf(i: number, language: 'python' | 'javascript'): SandboxProgram {
  const isPython = language === 'python';
  switch (kindOf(i)) {
    case 'endless':
      return { code: isPython ? 'while True: pass' : 'for (;;);' };
    case 'memory':
      return {
        code: isPython
          ? 'kept = []\nwhile True: kept.append(bytearray(2**22))'
          : 'const kept = []; for (;;) kept.push(new Uint8Array(2 ** 22).fill(1));',
      };
    case 'calls':
      return {
        code: isPython
          ? 'def f(n):\n    a, b = 0, 1\n    for _ in range(n): a, b = b, a + b\n    return a'
          : 'const f = (n) => { let [a, b] = [0, 1]; for (let i = 0; i < n; i++) [a, b] = [b, a + b]; return a; };',
        calls: [10, 20, 30].map((n) => ({ entry: 'f', args: [n] })),
      };
    case 'input':
      return {
        code: isPython
          ? 'words = input().split()\nprint(" ".join(sorted(words)))'
          : 'print(readline().split(" ").sort().join(" "))',
        stdin: 'pear apple fig\n',
      };
  }
}

function isAsExpected(result: SandboxResult, i: number): boolean {
  switch (kindOf(i)) {
    case 'endless':
      return result.status === 'timeout';
    case 'memory':
      return result.status === 'out_of_memory';
    case 'calls':
      return JSON.stringify(result.results.map((each) => each.status === 'ok' && each.value)) === '[55,6765,832040]';
    case 'input':
      return result.status === 'ok' && result.stdout === 'apple fig pear\n';
  }
}

function percentile(values: readonly number[], share: number): number {
  return [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))]!;
}
