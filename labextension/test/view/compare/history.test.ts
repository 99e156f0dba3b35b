import { describe, expect, test } from 'vitest';

import { baseOf, historyOf, isFirstOfCode, parseHistory, trendOf, trendsOf } from '../../../src/view/compare/history.js';
import { trendNode } from '../../../src/view/compare/trend.js';
import { aSite } from '../recordings.js';

const KEYS = [
  { function: 'f', flavor: 'io', where: 'line 3', source: 'f(x)' },
  { function: 'g', flavor: 'io', where: 'line 4', source: 'g(x)' }
];

function runs(...sites: (readonly (string | number)[])[][]) {
  return {
    sites: KEYS,
    codes: ['f(x)\ng(x)'],
    runs: sites.map((each, n) => ({ id: `r${n}`, number: n + 1, code: 0, sites: each }))
  };
}

describe('parseHistory', () => {
  test('reads the runs of a cell, and leaves out figures of unknown sites', () => {
    const [run, ...more] = parseHistory(runs([[1, 'raised', 5, 300, 70], [9, 'kept', 1, 1, 0]]));
    expect(more).toEqual([]);
    expect(run).toEqual({
      id: 'r0',
      number: 1,
      code: 'f(x)\ng(x)',
      sites: [{ ...KEYS[1], consequence: 'raised', calls: 5, total: 300, p95: 70 }]
    });
    expect(parseHistory(historyOf(run!))).toEqual([run]);
    expect(parseHistory(historyOf({ ...run!, code: null }))[0]!.code).toBeNull();
  });

  test.each([null, 3, {}, { sites: [], runs: 3 }, runs([[0, 'kept', 'x', 1, 0]])])(
    'reads no runs from %j',
    data => expect(parseHistory(data)).toEqual([])
  );
});

describe('baseOf', () => {
  const run = (number: number, code: string | null) => ({ id: `r${number}`, number, code, sites: [] });
  const [cold, warm, warmer, edited] = [run(1, 'a'), run(2, 'a'), run(3, 'a'), run(4, 'b')];
  const all = [cold, warm, warmer, edited];

  test('compares times with the second run of a code, where there is one before the later run', () => {
    expect(baseOf(cold, edited, all)).toEqual({ run: cold, timed: warm, isFirst: false });
    expect(baseOf(cold, warmer, all)).toEqual({ run: cold, timed: warm, isFirst: false });
    expect(baseOf(cold, warm, all)).toEqual({ run: cold, timed: cold, isFirst: true });
    expect(baseOf(warm, edited, all)).toEqual({ run: warm, timed: warm, isFirst: false });
  });

  test('does not guess about a run that the kernel does not know, or whose code it does not', () => {
    expect(baseOf(run(9, 'a'), edited, all)).toMatchObject({ timed: { number: 9 }, isFirst: false });
    const unknown = [run(1, null), run(2, null), run(3, null)];
    expect(baseOf(unknown[0]!, unknown[2]!, unknown)).toMatchObject({ timed: { number: 1 }, isFirst: false });
    expect(all.map(each => isFirstOfCode(each, all))).toEqual([true, false, false, true]);
  });
});

describe('trendsOf', () => {
  const [f, g] = KEYS.map(key => aSite({ ...key, calls: 2, host_ns: 500 }));

  test('finds the sites of earlier runs, also on other lines, and leaves out those never called', () => {
    const moved = aSite({ ...KEYS[0], where: 'line 8', calls: 2, host_ns: 500 });
    const past = parseHistory(
      runs(
        [[0, 'kept', 1, 900, 0]],
        [[0, 'kept', 1, 100, 0]],
        [[0, 'unused', 0, 0, 1], [1, 'kept', 1, 90, 0]],
        [[1, 'kept', 1, 7, 0]],
        []
      )
    );
    expect([...trendsOf(past, [moved, g!])].map(([place, { times }]) => [place, times])).toEqual([
      [0, [100, 250]],
      [1, [7, 250]]
    ]);
  });

  test('unchanged code is not faster because its first run was cold, or slower with more calls', () => {
    const MS = 1e6;
    const past = parseHistory(
      runs([[0, 'kept', 50, 78 * MS, 0]], [[0, 'kept', 50, 12 * MS, 0]], [])
    );
    const now = aSite({ ...KEYS[0], calls: 80, host_ns: 20 * MS });
    const trend = trendsOf(past, [now]).get(0)!;
    expect([trend.verdict, trend.times]).toEqual(['', [0.24 * MS, 0.25 * MS]]);
    expect(trendsOf(past.slice(1), [now]).size).toBe(0); // it can be compared with its first run only
  });

  test('there is none in the first two runs, or without times', () => {
    const one = [[0, 'kept', 1, 100, 0]];
    expect(trendsOf(parseHistory(runs(one)), [f!]).size).toBe(0);
    expect(trendsOf(parseHistory(runs(one, [])), [f!]).size).toBe(0);
    const past = parseHistory(runs(one, one, []));
    expect(trendsOf(past, [f!]).size).toBe(1);
    expect(trendsOf(past, [{ ...f!, host_ns: null }, { ...g!, calls: 0 }]).size).toBe(0);
  });
});

describe('trendOf', () => {
  const MS = 1e6;

  test.each([
    [[1, 1, 1], 2, 'slower', 2, 1],
    [[4, 4, 8], 2, 'faster', 0.5, 1],
    [[1, 1, 3], 2, '', 2, 1], // an earlier run was slower still
    [[1, 3, 4], 2, '', 2 / 3, 1],
    [[1], 1.2, '', 1.2, 1],
    [[0.01], 0.05, '', 5, 1], // too short to matter
    [[0.01], 0.05, 'slower', 5, 10],
    [[2, 4], 6, 'slower', 2, 1] // the median of an even number of runs
  ])('of %j ms, then %d ms is %j', (before, last, verdict, ratio, calls) => {
    const trend = trendOf(before.map(ms => ms * MS), last * MS, calls);
    expect(trend.verdict).toBe(verdict);
    expect(trend.ratio).toBeCloseTo(ratio);
  });

  test('is drawn as a line with a dot at its end, and said in words, not by color alone', () => {
    const node = trendNode(trendOf([2 * MS, 4 * MS], MS, 1));
    const line = node.querySelector('[role=img]')!;
    expect(line.getAttribute('aria-label')).toBe(
      'time per call in the last 3 runs: 2 ms, 4 ms, 1 ms'
    );
    expect(line.querySelector('polyline')!.getAttribute('points')).toBe('2,7 28,2 54,10');
    expect(node.className).toBe('jaxcb-trend jaxcb-trend-faster');
    expect(node.textContent).toBe('3 × faster');
  });
});
