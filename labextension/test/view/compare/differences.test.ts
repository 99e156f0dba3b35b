import { describe, expect, it, test } from 'vitest';

import { differenceWords, pairsOf, ratioWords } from '../../../src/view/compare/differences.js';
import { runOf, type Run, type RunSite } from '../../../src/view/compare/run.js';
import { aSite, someCalls, someFacts, someMeasured } from '../recordings.js';

function site(more: Partial<RunSite> = {}): RunSite {
  return {
    function: 'f',
    flavor: 'pure',
    where: 'line 3',
    source: 'y = f(x)',
    consequence: 'kept',
    calls: 1,
    total: 1000,
    p95: 1000,
    ...more
  };
}

function run(...sites: RunSite[]): Run {
  return { id: '', sites };
}

describe('pairsOf', () => {
  it('matches lines that moved by their text, not by their number', () => {
    const [a, b] = [site({ source: 'a = f(x)' }), site({ source: 'b = f(x)' })];
    const [movedB, movedA] = [{ ...b, where: 'line 9' }, { ...a, where: 'line 10' }];
    expect(pairsOf([a, b], [movedB, movedA])).toEqual([
      { before: b, after: movedB },
      { before: a, after: movedA }
    ]);
  });

  it('matches an edited line by its function, in program order', () => {
    const [one, two] = [site({ source: 'f(1)' }), site({ source: 'f(2)' })];
    const [first, second] = [site({ source: 'f(10)' }), site({ source: 'f(2)' })];
    expect(pairsOf([one, two], [first, second])).toEqual([
      { before: one, after: first },
      { before: two, after: second }
    ]);
  });

  it('lists new sites in place and lost sites at the end', () => {
    const [lost, added] = [site({ function: 'lost' }), site({ function: 'added' })];
    expect(pairsOf([lost, site()], [added, site()])).toEqual([
      { before: null, after: added },
      { before: site(), after: site() },
      { before: lost, after: null }
    ]);
  });

  it('does not match callbacks of different flavors', () => {
    expect(pairsOf([site()], [site({ flavor: 'io' })])).toHaveLength(2);
  });
});

describe('differenceWords', () => {
  it('gives the change in calls and the ratio of the 95th percentiles of a single site', () => {
    const before = run(site({ calls: 100, p95: 1000 }));
    expect(differenceWords(before, run(site({ calls: 140, p95: 2000 })))).toBe('+40 calls, p95 × 2');
    expect(differenceWords(before, run(site({ calls: 99, p95: null, total: null })))).toBe('−1 call');
    const earlier = run(site({ p95: null, total: 500 })); // the kernel keeps no percentiles
    expect(differenceWords(earlier, run(site({ total: 2000 })))).toBe('same number of calls, time × 4');
    expect(differenceWords(before, before)).toBe('same number of calls, p95 × 1');
    const more = run(site({ calls: 4, p95: null, total: 8000 }));
    expect(differenceWords(earlier, more)).toBe('+3 calls, time per call × 4');
    expect(differenceWords(earlier, run(site({ calls: 0, total: 0 })))).toBe('−1 call');
  });

  it('sums over several sites, whose percentiles have no sum', () => {
    const before = run(site({ total: 3000 }), site({ total: 1000 }));
    const after = run(site({ calls: 1500, total: 1000 }), site({ total: 1000 }));
    expect(differenceWords(before, after)).toBe('+1,499 calls, time × 0.5');
    expect(differenceWords(before, run(site({ total: null }), site()))).toBe('same number of calls');
  });
});

test.each([
  [1000, 1049, 'p95 × 1'],
  [1000, 1530, 'p95 × 1.5'],
  [1000, 24, 'p95 × 0.024'],
  [1, 1234.5, 'p95 × 1,235'],
  [0, 5, ''],
  [null, 5, '']
])('from %s ns to %s ns', (before, after, words) => {
  expect(ratioWords('p95', before, after)).toBe(words);
});

test('a run has the calls, the time and the percentile of each site', async () => {
  const other = aSite({ function: 'other', calls: 0, host_ns: 0 });
  const facts = someFacts([aSite({ calls: 2, host_ns: 300 }), other]);
  const measured = someMeasured({ id: 'r1' });
  const { id, sites } = await runOf(facts, measured, someCalls(2));
  expect(id).toBe('r1');
  expect(sites).toMatchObject([
    { function: 'bessel', calls: 2, total: 300 },
    { function: 'other', calls: 0, total: 0, p95: null }
  ]);
  expect(sites[0]!.p95).toBeGreaterThan(0);
});

test('a run whose times are not saved, or whose calls cannot be read, has none', async () => {
  const { sites } = await runOf(someFacts(), someMeasured(), null);
  expect(sites).toMatchObject([{ calls: 1, total: null, p95: null }]);
  const broken = someMeasured({ calls: { rows: 2, unit_ns: 1, zlib: 'no', crossings: '' } });
  expect((await runOf(someFacts(), broken, null)).sites).toMatchObject([{ calls: 1, p95: null }]);
});
