import { expect, test } from 'vitest';
import { filtered, groupsOf, sorted, type Group } from '../../../src/lab/panel/groups.js';
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
  const by = (order: Parameters<typeof sorted>[2]): string =>
    names(sorted(THREE, groupsOf(THREE), order)).join('');
  expect([by('registered'), by('calls'), by('host_ns'), by('trouble')]).toEqual([
    'abc',
    'bca',
    'acb',
    'cba'
  ]);
});

test('sorts the sites of a callback by the same order', () => {
  const few = { ...SITE, calls: 1, host_ns: 90, elided: 1 };
  const data = snapshot({
    callbacks: [{ ...CALLBACK, sites: [0, 1] }],
    sites: [few, { ...SITE, calls: 3, host_ns: 20, elided: 0 }]
  });
  const by = (order: Parameters<typeof sorted>[2]): readonly number[] =>
    sorted(data, groupsOf(data), order)[0]!.sites;
  expect(by('registered')).toEqual([0, 1]);
  expect(by('calls')).toEqual([1, 0]);
  expect(by('host_ns')).toEqual([0, 1]);
  expect(by('trouble')).toEqual([0, 1]);
});

const TWO_SITES = snapshot({
  callbacks: [{ ...CALLBACK, sites: [0, 1] }],
  sites: [SITE, { ...SITE, cell_id: 'three', consequence: 'not_reached', reason: 'a branch' }]
});
const LABELS = new Map([['one', '[2]'], ['two', '[45]'], ['three', '[46]']]);

/** The sites of the only group of `TWO_SITES` that a filter leaves; null: not even the group. */
function left(query: string): readonly number[] | null {
  return filtered(TWO_SITES, groupsOf(TWO_SITES)[0]!, query, LABELS)?.sites ?? null;
}

test('a filter for the function, flavor, options or cell of a callback leaves all of its sites', () => {
  for (const query of ['', 'BESSEL', 'pure bessel', 'expand', '[2]']) {
    expect(left(query)).toEqual([0, 1]);
  }
});

test('a filter leaves the sites whose source, status, reason or cell has all words', () => {
  expect(left('[45]')).toEqual([0]);
  expect(left('bessel not reached')).toEqual([1]);
  expect(left('[46] branch return')).toEqual([1]);
  expect(left('kept [46]')).toBeNull();
});

test('a filter finds failed sites and their errors', () => {
  const all = snapshot({ sites: [{ ...SITE, consequence: 'raised', errors: ['ValueError: no luck'] }] });
  const find = (query: string): unknown => filtered(all, groupsOf(all)[0]!, query, LABELS)?.sites;
  expect([find('raised'), find('valueerror'), find('kept')]).toEqual([[0], [0], undefined]);
});
