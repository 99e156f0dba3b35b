/** Exact figures about the durations of all calls, by site, with bins for their histograms. */

import { THREADS } from '../../data/columns.js';
import { hasFailed } from '../../data/labels.js';
import { AT_ONCE, pause } from '../../data/pause.js';
import { lowerBound } from '../../data/search-sorted.js';
import type { Store } from '../../data/store.js';

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
  const { calls, labels } = store;
  const unknown = labels.sites.length;
  const threads = new Uint32Array(THREADS);
  const counts = new Uint32Array(unknown + 1);
  await everyRow(calls.length, row => {
    counts[store.site(row) ?? unknown]!++;
    threads[calls.thread(row)]!++;
  });
  const durations = Array.from(counts, count => new Float64Array(count));
  const [filled, failed, slowest] = [counts.map(() => 0), counts.map(() => 0), counts.map(() => 0)];
  const totals = Array.from(counts, () => 0);
  await everyRow(calls.length, row => {
    const site = store.site(row) ?? unknown;
    const ns = calls.duration(row);
    if (filled[site] === 0 || ns > calls.duration(slowest[site]!)) {
      slowest[site] = row;
    }
    durations[site]![filled[site]!++] = ns;
    totals[site]! += ns;
    failed[site]! += hasFailed(store, row) ? 1 : 0;
  });
  let since = 0;
  for (const sorted of durations) {
    since += sorted.length;
    if (since > AT_ONCE) {
      since = sorted.length;
      await pause();
    }
    sorted.sort();
  }
  const some = [...durations.keys()].filter(site => counts[site]);
  const least = some.reduce((found, site) => Math.min(found, durations[site]![0]!), Infinity);
  const most = some.reduce((found, site) => Math.max(found, durations[site]!.at(-1)!), 0);
  const edges = some.length ? edgesOf(least, most, calls.unitNs, Math.max(...counts)) : [];
  return {
    sites: some.map(site => ({
      site: site < unknown ? site : null,
      calls: counts[site]!,
      failed: failed[site]!,
      total: totals[site]!,
      least: durations[site]![0]!,
      median: quantile(durations[site]!, 0.5),
      p95: quantile(durations[site]!, 0.95),
      most: durations[site]!.at(-1)!,
      slowest: slowest[site]!,
      bins: binned(durations[site]!, edges)
    })),
    edges,
    total: totals.reduce((sum, total) => sum + total, 0),
    threads: new Map([...threads.entries()].filter(([, count]) => count > 0))
  };
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
  return below + (sorted[Math.ceil(place)]! - below) * (place - Math.floor(place));
}

function binned(sorted: Float64Array, edges: readonly number[]): Uint32Array {
  const places = edges.map(edge => lowerBound(sorted, edge, 0, sorted.length));
  return Uint32Array.from(places.slice(1), (place, bin) => place - places[bin]!);
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

// The preferred numbers of the series R40 (ISO 3), which contains R20, R10 and R5.
const DECADE = [
  100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280,
  300, 315, 335, 355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850,
  900, 950
];
const STEPS = [1, 2, 4, 8, 20, 40]; // through the series
const MOST_BINS = 44;
const FEW_BINS = 24; // at most, for a few calls
const LEAST_BINS = 16; // so that one bar of equal durations is not as wide as the histogram
const LEAST_UNITS = 2; // narrower bins would be empty or not, depending on rounding alone

/**
 * The edges of bins that contain all durations from `least` to `most`: from an edge to before the
 * next one. They are round, and equally far apart on a logarithmic scale.
 *
 * Args:
 *   unit: the resolution of the durations; edges are multiples of it.
 *   calls: their number; few calls get fewer bins.
 */
export function edgesOf(least: number, most: number, unit: number, calls = Infinity): number[] {
  const [low, high] = [position(Math.max(least, unit)), position(Math.max(most, unit))];
  const bins = Math.min(Math.max(2 * Math.sqrt(calls), FEW_BINS), MOST_BINS);
  const step = STEPS.find(each => (high - low) / each + 2 <= bins) ?? STEPS.at(-1)!;
  const missing = step === STEPS[0] ? LEAST_BINS - (high - low + 2) : 0;
  const around = Math.max(Math.ceil(missing / 2), 0);
  const edges = least < unit ? [0, unit] : [];
  let at = Math.floor((low - around) / step) * step;
  for (; edges.length < 2 || edges.at(-1)! <= most || at <= high + around; at += step) {
    const decade = Math.floor(at / DECADE.length);
    const value = (DECADE[at - DECADE.length * decade]! / 100) * 10 ** decade;
    const edge = Math.floor(value / unit + 1e-6) * unit;
    if (edges.length === 0 ? edge > 0 : edge >= edges.at(-1)! + LEAST_UNITS * unit) {
      edges.push(edge);
    }
  }
  return edges;
}

/** The last position in the series whose value is not more than `ns`. */
function position(ns: number): number {
  const decade = Math.floor(Math.log10(ns) + 1e-9);
  const place = DECADE.findIndex(each => (each / 100) * 10 ** decade > ns * (1 + 1e-9));
  return DECADE.length * decade + (place < 0 ? DECADE.length : place) - 1;
}

/** The bin of a duration; `edges` contain it. */
export function binOf(edges: readonly number[], ns: number): number {
  const after = lowerBound(edges, ns, 1, edges.length - 1);
  return edges[after] === ns ? Math.min(after, edges.length - 2) : after - 1;
}
