/** Exact figures about the durations of all calls, by site. */

import { hasFailed } from '../../data/labels.js';
import { THREADS } from '../../data/columns.js';
import { AT_ONCE, pause } from '../../data/pause.js';
import type { Store } from '../../data/store.js';
import { lowerBound } from '../../data/search-sorted.js';
import { binOf, edgesOf } from './bins.js';

/** Durations in nanoseconds. */
export interface SiteFigures {
  readonly site: number | null; // null: unknown
  readonly calls: number;
  readonly failed: number;
  readonly total: number;
  readonly least: number;
  readonly median: number;
  readonly p95: number;
  readonly most: number;
  readonly slowest: number; // the row of the first call that took longest
  readonly bins: Uint32Array; // calls by bin
}

export interface Figures {
  readonly sites: readonly SiteFigures[]; // those with calls, in the order of the labels
  readonly edges: readonly number[]; // of the bins, common to all sites
  readonly total: number;
  readonly threads: ReadonlyMap<number, number>; // calls by thread
}

/** Resolves to the figures of all calls in `store`, without blocking the page. */
export async function figuresOf(store: Store): Promise<Figures> {
  const { counts, threads } = await countsOf(store);
  const durations = await bySite(store, counts);
  const some = counts.filter(count => count.calls > 0);
  const least = some.reduce((found, count) => Math.min(found, count.least), Infinity);
  const most = some.reduce((found, count) => Math.max(found, count.most), 0);
  const many = some.reduce((found, count) => Math.max(found, count.calls), 0);
  const edges = some.length ? edgesOf(least, most, store.calls.unitNs, many) : [];
  const sites: SiteFigures[] = [];
  let since = 0;
  for (const [site, count] of counts.entries()) {
    if (count.calls === 0) {
      continue;
    }
    since += count.calls;
    if (since > AT_ONCE) {
      since = count.calls;
      await pause();
    }
    const sorted = durations[site]!.sort();
    sites.push({
      ...count,
      site: site < store.labels.sites.length ? site : null,
      median: quantile(sorted, 0.5),
      p95: quantile(sorted, 0.95),
      bins: binned(sorted, edges)
    });
  }
  const total = counts.reduce((sum, count) => sum + count.total, 0);
  return { sites, edges, total, threads };
}

interface Count {
  calls: number;
  failed: number;
  total: number;
  least: number;
  most: number;
  slowest: number;
}

/** Counts calls by site, the last for those whose site is unknown, and by thread. */
async function countsOf(
  store: Store
): Promise<{ counts: Count[]; threads: Map<number, number> }> {
  const { calls, labels } = store;
  const threads = new Uint32Array(THREADS);
  const counts = Array.from({ length: labels.sites.length + 1 }, (): Count => ({
    calls: 0,
    failed: 0,
    total: 0,
    least: Infinity,
    most: -1,
    slowest: 0
  }));
  await everyRow(calls.length, row => {
    const count = counts[store.site(row) ?? labels.sites.length]!;
    const duration = calls.duration(row);
    count.calls++;
    count.failed += hasFailed(store, row) ? 1 : 0;
    count.total += duration;
    count.least = Math.min(count.least, duration);
    if (duration > count.most) {
      count.most = duration;
      count.slowest = row;
    }
    threads[calls.thread(row)]!++;
  });
  return { counts, threads: new Map([...threads.entries()].filter(([, count]) => count > 0)) };
}

/** The durations of each site, unsorted. */
async function bySite(store: Store, counts: readonly Count[]): Promise<Float64Array[]> {
  const durations = counts.map(count => new Float64Array(count.calls));
  const filled = counts.map(() => 0);
  await everyRow(store.calls.length, row => {
    const site = store.site(row) ?? counts.length - 1;
    durations[site]![filled[site]!++] = store.calls.duration(row);
  });
  return durations;
}

async function everyRow(rows: number, visit: (row: number) => void): Promise<void> {
  for (let row = 0; row < rows; row++) {
    if (row > 0 && row % AT_ONCE === 0) {
      await pause();
    }
    visit(row);
  }
}

/** As `numpy.quantile`: between two values, it interpolates. */
export function quantile(sorted: Float64Array, share: number): number {
  const place = share * (sorted.length - 1);
  const below = sorted[Math.floor(place)]!;
  const above = sorted[Math.ceil(place)]!;
  return below + (above - below) * (place - Math.floor(place));
}

function binned(sorted: Float64Array, edges: readonly number[]): Uint32Array {
  const places = edges.map(edge => lowerBound(sorted, edge, 0, sorted.length));
  return Uint32Array.from({ length: edges.length - 1 }, (_, bin) => places[bin + 1]! - places[bin]!);
}

/** The calls that pass the filter of `store`, by site of `figures` and bin. */
export function shownBins(store: Store, { sites, edges }: Figures): Uint32Array[] {
  if (store.showsAll()) {
    return sites.map(({ bins }) => bins);
  }
  const shown = sites.map(() => new Uint32Array(edges.length - 1));
  const bySite = new Map(sites.map(({ site }, place) => [site, shown[place]!]));
  for (let row = 0; row < store.calls.length; row++) {
    if (store.shows(row)) {
      bySite.get(store.site(row))![binOf(edges, store.calls.duration(row))]!++;
    }
  }
  return shown;
}
