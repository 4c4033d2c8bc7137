import { defineConfig } from 'vitest/config';

/** Unit tests run from source: the condition below makes packages resolve each other's `src`. */
const conditions = ['loopwright-source'];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts', 'recipes/*/*.test.ts'],
    testTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
  },
});
