import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** Unit tests run from source: the condition below makes packages resolve each other's `src`. */
const conditions = ['loopwright-source'];

const report = process.env.LOOPWRIGHT_TEST_REPORT;

export default defineConfig({
  test: {
    testTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
    env: { ORT_DISABLE_TELEMETRY: '1' },
    globalSetup: ['./test/support/temporary-root.ts'],
    // `.ci/run` counts what passed and failed from this file.
    ...(report === undefined ? {} : { reporters: ['default', ['json', { outputFile: report }]] }),
    projects: [
      {
        extends: true,
        resolve: { conditions },
        ssr: { resolve: { conditions } },
        test: { name: 'unit', include: ['packages/*/src/**/*.test.ts', 'tools/*/src/**/*.test.ts'] },
      },
      {
        // What crosses packages, processes or HTTP runs what is published: the compiled packages.
        extends: true,
        test: {
          name: 'whole',
          // Processes that load models, on machines that do other things as well.
          testTimeout: 240_000,
          hookTimeout: 60_000,
          include: ['test/**/*.test.ts', 'recipes/*/*.test.ts'],
          env: { LOOPWRIGHT_HOME: fileURLToPath(new URL('tmp/test-home', import.meta.url)) },
        },
      },
      { extends: true, test: { name: 'slow', include: ['test/slow/*.slow.ts'] } },
    ],
  },
});
