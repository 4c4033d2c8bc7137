import { createGrader, createPythonSandbox, unitTests } from 'loopwright';

await using sandbox = await createPythonSandbox({ workers: 2, timeoutMs: 5000 });

// What an answer is worth: the share of the tests that its program passes.
const grade = createGrader({
  components: [
    unitTests({
      sandbox,
      score: 'share',
      tests: () => ({
        type: 'statements',
        entry: ['double'],
        tests: ['assert double(2) == 4', "assert double('ab') == 'abab'"],
      }),
    }),
  ],
});

const programs = {
  right: 'def double(x): return x + x',
  'half right': 'def double(x): return x ** 2',
  'never ends': 'def double(x):\n    while True: pass',
  cheats: 'import sys\nclass Any:\n    __eq__ = lambda *all: True\ndef double(x): return Any()\nprint("passed")',
  leaves: 'import os\nos._exit(0)',
};
const problem = { id: 'double', question: 'Write double(x).', answer: '' };
for (const [name, code] of Object.entries(programs)) {
  const text = `Here it is:\n\`\`\`python\n${code}\n\`\`\``;
  const judged = await grade({ problem, text, stopReason: 'stop' });
  console.log(`${name}: ${judged.status}, ${'reward' in judged ? judged.reward : 'no reward'}`);
}

// The sandbox alone: a program with input and a file, and calls of its functions.
const { status, stdout, results } = await sandbox.run({
  code: 'print(input(), open("n.txt").read())\ndef add(a, b): return a + b',
  stdin: 'hello',
  files: { 'n.txt': '42' },
  calls: [
    { entry: 'add', args: [1, 2] },
    { entry: 'add', args: [1, 'x'] },
  ],
});
console.log(status, stdout.trim(), JSON.stringify(results));
