/** The README says what is in each folder of `src`, and no folder is large. */

import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const MOST = 15; // entries of a folder

const ENTRIES = readdirSync('src', { recursive: true, withFileTypes: true });
const FOLDERS = ENTRIES.filter(entry => entry.isDirectory()).map(
  ({ parentPath, name }) => `${parentPath}/${name}`
);

test('each folder has its row in the README', () => {
  const rows = readFileSync('README.md', 'utf8').matchAll(/^\| `([\w/]+)` \| \S/gm);
  expect([...rows].map(([, name]) => `src/${name}`).sort()).toEqual(FOLDERS.sort());
});

test.each(FOLDERS)('%s has a dozen entries or so', folder => {
  expect(readdirSync(folder).length).toBeLessThanOrEqual(MOST);
});
