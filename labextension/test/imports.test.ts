/** Modules do not import each other in a circle, not even types. */

import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { expect, test } from 'vitest';

const MODULES = new Map(
  readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.ts'))
    .map(path => [path, imports(path, readFileSync(`src/${path}`, 'utf8'))])
);

function imports(path: string, source: string): string[] {
  const found = source.matchAll(/ from '(\.[^']+)\.js'/g);
  return [...found].map(([, name]) => posix.join(posix.dirname(path), `${name}.ts`));
}

/** The first circle of imports in a graph; empty: there is none. */
function circle(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const follow = (module: string, before: string[]): string[] => {
    if (before.includes(module)) {
      return [...before.slice(before.indexOf(module)), module];
    }
    if (done.has(module)) {
      return [];
    }
    for (const imported of graph.get(module) ?? []) {
      const found = follow(imported, [...before, module]);
      if (found.length > 0) {
        return found;
      }
    }
    done.add(module);
    return [];
  };
  return [...graph.keys()].map(module => follow(module, [])).find(found => found.length > 0) ?? [];
}

test('no module imports itself through others', () => {
  expect(MODULES.get('view/data/filter.ts')).toContain('view/data/search.ts');
  expect(circle(MODULES)).toEqual([]);
  const labels = MODULES.get('view/data/labels.ts')!;
  const planted = new Map(MODULES).set('view/data/labels.ts', [...labels, 'view/data/store.ts']);
  expect(circle(planted)).toContain('view/data/store.ts');
});
