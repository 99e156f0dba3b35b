import { expect, test, vi } from 'vitest';
import { EVERYTHING } from '../../../../src/view/data/store.js';
import { binOf, edgesOf, figuresOf, shownBins } from '../../../../src/view/calls/distribution/figures.js';
import { storeOf } from '../stores.js';

const CALLS = [
  { start: 0, duration: 40 },
  { start: 50, duration: 10, error: 1 },
  { start: 100, duration: 20, thread: 1 },
  { start: 150, duration: 1000, variant: 1 },
  { start: 200, duration: 40, error: 2 } // stopped by the user
];
const LABELS = { errors: ['ValueError: no luck', 'stopped by you'] };
const sum = (bins: Uint32Array): number => bins.reduce((total, calls) => total + calls, 0);

/** Each duration once, in no order: 7919 has no divisor in common with `count`. */
const shuffled = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ start: n, duration: 1 + ((n * 7919) % count) }));

test('the calls of each site are counted, and quantiles interpolated as NumPy does', async () => {
  const { sites, total, threads } = await figuresOf(storeOf(CALLS, LABELS));
  // numpy.quantile([10, 20, 40, 40], [0.5, 0.95]) == [30, 40]
  expect(sites).toMatchObject([
    { site: 0, calls: 4, failed: 1, total: 110, least: 10, median: 30, p95: 40, most: 40, slowest: 0 },
    { site: 1, calls: 1, failed: 0, least: 1000, median: 1000, p95: 1000, slowest: 3 }
  ]);
  expect([total, [...threads]]).toEqual([1110, [[0, 4], [1, 1]]]);
  expect(await figuresOf(storeOf([]))).toMatchObject({ sites: [], edges: [], total: 0 });
  const unknown = await figuresOf(storeOf([{ start: 0, variant: 7 }, { start: 1, variant: 1 }]));
  expect(unknown.sites.map(({ site, calls }) => [site, calls])).toEqual([[1, 1], [null, 1]]);
});

test('quantiles of many calls are exact', async () => {
  const { sites } = await figuresOf(storeOf(shuffled(10_001)));
  expect(sites[0]).toMatchObject({ least: 1, median: 5001, p95: 9501, most: 10_001 });
  expect(sum(sites[0]!.bins)).toBe(10_001);
});

test('the page can handle input between parts of many calls', async () => {
  const tasks = vi.fn();
  const timer = setInterval(tasks, 0);
  await figuresOf(storeOf(shuffled(500_000)));
  clearInterval(timer);
  expect(tasks.mock.calls.length).toBeGreaterThanOrEqual(4);
});

test('shownBins counts the calls that pass the filter', async () => {
  const store = storeOf(CALLS);
  const figures = await figuresOf(store);
  const filters = [{}, { thread: 0 }, { errors: true, site: 0 }];
  const counts = filters.map(filter => {
    store.narrow({ ...EVERYTHING, ...filter });
    return shownBins(store, figures).map(sum);
  });
  expect(counts).toEqual([[4, 1], [3, 1], [2, 0]]);
});

test('edges of bins are round, on a logarithmic scale, and farther apart for few calls', () => {
  const all = edgesOf(1000, 9_000_000, 1);
  expect(all.slice(0, 7)).toEqual([1000, 1250, 1600, 2000, 2500, 3150, 4000]);
  expect(edgesOf(1000, 9_000_000, 1, 20).slice(0, 3)).toEqual([1000, 1600, 2500]);
  expect(edgesOf(1000, 9_000_000, 1, 1_000_000)).toEqual(all);
  const equal = edgesOf(20_000, 20_000, 1); // with room around the only bin
  expect([equal.length > 12, binOf(equal, 20_000) > 4]).toEqual([true, true]);
});

test.each([
  [0, 0, 1], [0, 5e6, 100], [1, 1, 1], [999, 1000, 1], [100, 4e18, 1e9], [3e9, 3.01e9, 1],
  [100, 4000, 100], [1e-3, 1e-3, 1e-3]
])('they contain the durations from %d to %d ns, and in units of %d ns are two apart', (least, most, unit) => {
  const edges = edgesOf(least, most, unit);
  const widths = edges.slice(least < unit ? 2 : 1).map((edge, n) => edge - edges.at(n - edges.length + (least < unit ? 1 : 0))!);
  expect([edges[0]! <= least, edges.at(-1)! > most, edges.length < 60]).toEqual([true, true, true]);
  expect(Math.min(...widths) / unit).toBeGreaterThan(1.99);
});

test('a duration is in the bin from whose edge it is before the next edge', () => {
  const bins = [0, 99, 100, 199, 200, 499].map(ns => binOf([0, 100, 200, 500], ns));
  expect(bins).toEqual([0, 0, 1, 1, 2, 2]);
});
