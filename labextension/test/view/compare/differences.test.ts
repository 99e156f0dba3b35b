import { describe, expect, it, test } from 'vitest';

import { differenceWords, pairsOf, ratioWords } from '../../../src/view/compare/differences.js';
import { changedLines } from '../../../src/view/compare/code.js';
import { runOf, type Run, type RunSite } from '../../../src/view/compare/run.js';
import { aSite, someFacts, someMeasured } from '../recordings.js';

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
  return { id: '', number: 0, code: null, sites };
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
    expect(differenceWords(earlier, run(site({ total: 2000 })))).toBe('same number of calls, time per call × 4');
    expect(differenceWords(before, before)).toBe('same number of calls, p95 × 1');
    const more = run(site({ calls: 4, p95: null, total: 8000 }));
    expect(differenceWords(earlier, more)).toBe('+3 calls, time per call × 4');
    expect(differenceWords(earlier, run(site({ calls: 0, total: 0 })))).toBe('−1 call');
  });

  it('compares several sites per call, as often as each is called now', () => {
    const before = run(site({ total: 3000 }), site({ total: 1000 }), site({ function: 'lost', total: 9e9 }));
    const after = run(site({ calls: 9, total: 27_000 }), site({ total: 1000 }));
    expect(differenceWords(before, after)).toBe('+7 calls, time per call × 1');
    const slower = run(site({ calls: 9, total: 54_000 }), site({ total: 2000 }), site({ function: 'new' }));
    expect(differenceWords(before, slower)).toBe('+8 calls, time per call × 2');
    expect(differenceWords(before, run(site({ total: null }), site()))).toBe('−1 call');
  });

  it('takes times from another run than calls, if that is given', () => {
    const [cold, warm] = [run(site({ calls: 2, p95: 9000 })), run(site({ p95: 500 }))];
    expect(differenceWords(cold, run(site()), warm)).toBe('−1 call, p95 × 2');
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

test('a run has the calls and the time of each site, if it is known', () => {
  const other = aSite({ function: 'other', calls: 0, host_ns: null });
  const facts = someFacts([aSite({ calls: 2, host_ns: 300 }), other]);
  expect(runOf(facts, someMeasured({ id: 'r1' }))).toMatchObject({
    id: 'r1',
    code: null,
    sites: [
      { function: 'bessel', calls: 2, total: 300, p95: null },
      { function: 'other', calls: 0, total: null }
    ]
  });
});

describe('changedLines', () => {
  const words = (before: string, after: string): string[] =>
    changedLines(before, after).map(({ added, text }) => (added ? '+' : '-') + text);

  it.each([
    ['a\nb\nc', 'a\nb\nc', []],
    ['', 'a', ['-', '+a']],
    ['a\nb\nc', 'a\nc', ['-b']],
    ['a\nc', 'a\nb\nc', ['+b']],
    ['a\na', 'a\na\na', ['+a']],
    ['x\nb\ny\nd', 'X\nb\nY\nd', ['-x', '+X', '-y', '+Y']],
    ['a\n', 'a', ['-']],
    ['<b>x</b>', '\u202ex', ['-<b>x</b>', '+\u202ex']]
  ])('from %j to %j: %j', (before, after, changes) => {
    expect(words(before, after)).toEqual(changes);
  });

  it('takes long parts without a common beginning or end as changed', () => {
    const long = (word: string): string => Array.from({ length: 600 }, (_, n) => word + (n % 7)).join('\n');
    expect(changedLines(`same\n${long('a')}\nend`, `same\n${long('b')}\nend`)).toHaveLength(1200);
    expect(changedLines(`x${'\n'.repeat(19_999)}`, `${'\n'.repeat(19_998)}y`).length).toBeLessThan(40_000);
  });
});
