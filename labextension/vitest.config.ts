import { readdirSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

const MOCKING = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter(path => path.endsWith('.test.ts'))
  .map(path => `test/${path}`)
  .filter(path => readFileSync(path, 'utf8').includes('vi.mock('));

export default defineConfig({
  test: {
    environment: 'jsdom',
    setupFiles: ['test/setup.ts'],
    projects: [
      // The files of a worker share modules and one document, whose creation takes longer than the
      // tests of most files.
      {
        extends: true,
        test: {
          name: 'shared',
          include: ['test/**/*.test.ts'],
          exclude: MOCKING,
          isolate: false
        }
      },
      // Files that replace modules would replace them for the files after them too.
      { extends: true, test: { name: 'mocking', include: MOCKING, isolate: true } }
    ]
  }
});
