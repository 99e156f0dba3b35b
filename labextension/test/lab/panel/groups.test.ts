import { expect, test } from 'vitest';
import { groupsOf, matches, sorted, type Group } from '../../../src/lab/panel/groups.js';
import { CALLBACK, SITE, snapshot } from '../snapshots.js';

function names(groups: readonly Group[]): string[] {
  return groups.map(group => group.callback.name);
}

const THREE = snapshot({
  callbacks: [
    { ...CALLBACK, name: 'a', calls: 1, host_ns: 30, errors: 0 },
    { ...CALLBACK, name: 'b', calls: 3, host_ns: 10, errors: 0, elided: 1 },
    { ...CALLBACK, name: 'c', calls: 2, host_ns: 20, errors: 2 }
  ]
});

test('a callback registered twice on a line has two keys, equal in every snapshot', () => {
  const keys = (): string[] =>
    groupsOf(snapshot({ callbacks: [CALLBACK, CALLBACK] })).map(group => group.key);
  expect(new Set(keys()).size).toBe(2);
  expect(keys()).toEqual(keys());
});

test('sites of callbacks that are no longer registered come last, with their totals', () => {
  const sites = [SITE, { ...SITE, errors: ['E'] }, { ...SITE, calls: 2, elided: 3 }];
  const groups = groupsOf(snapshot({ sites }));
  expect(names(groups)).toEqual(['bessel', 'No longer registered']);
  expect(groups[1]!.sites).toEqual([1, 2]);
  expect(groups[1]!.callback).toMatchObject({ calls: 7, elided: 3, errors: 1, host_ns: 82000 });
});

test('sorts groups by the requested order', () => {
  const by = (order: Parameters<typeof sorted>[1]): string =>
    names(sorted(groupsOf(THREE), order)).join('');
  expect([by('registered'), by('calls'), by('host_ns'), by('trouble')]).toEqual([
    'abc',
    'bca',
    'acb',
    'cba'
  ]);
});

test('a filter matches if all of its words occur in a callback or its sites', () => {
  const all = snapshot();
  const group = groupsOf(all)[0]!;
  const found = ['', 'BESSEL kept', 'return expand', 'bessel dead'].map(query =>
    matches(all, group, query)
  );
  expect(found).toEqual([true, true, true, false]);
});
