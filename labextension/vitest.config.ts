import { defineConfig } from 'vitest/config';

export default defineConfig({
  // The files of a worker share one document: creating it takes longer than the tests of most files.
  test: {
    environment: 'jsdom',
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/setup.ts'],
    isolate: false
  }
});
