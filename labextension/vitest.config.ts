import { defineConfig } from 'vitest/config';

export default defineConfig({
  // One document for the files of a worker: making one takes longer than most files' tests.
  test: {
    environment: 'jsdom',
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/setup.ts'],
    isolate: false
  }
});
