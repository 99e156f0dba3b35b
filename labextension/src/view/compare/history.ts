/** The last runs of a cell, as the kernel remembers them, and how the time of a site went. */

import { conform } from '../data/parse/conform.js';
import type { Runs, Site } from '../data/schema.js';
import { pairsOf } from './differences.js';
import { runSite, type Run } from './run.js';

const CHANGE = 1.25; // a smaller ratio is not worth a word
const LEAST_NS = 100_000; // neither is a smaller difference, over all calls of a run

/**
 * The runs of the cell up to the shown one, oldest first; none if the data, which `History` in
 * `notebook/display` writes, is damaged.
 */
export function parseHistory(data: unknown): Run[] {
  const [{ sites: keys, codes, runs }, damage] = conform('Runs', data);
  const known = damage ? [] : runs;
  return known.map(({ id, number, code, sites }) => ({
    id,
    number,
    code: codes[code ?? -1] ?? null,
    sites: sites.flatMap(([place, consequence, calls, total, p95]) => {
      const key = keys[place];
      return key ? [{ ...key, consequence, calls, total, p95: p95 || null }] : [];
    })
  }));
}

/** A run in the form that `parseHistory` reads. */
export function historyOf({ id, number, code, sites }: Run): Runs {
  return {
    sites: sites.map(({ function: name, flavor, where, source }) => ({ function: name, flavor, where, source })),
    codes: code === null ? [] : [code],
    runs: [
      {
        id,
        number,
        code: code === null ? null : 0,
        sites: sites.map(({ consequence, calls, total, p95 }, place) => [
          place, consequence, calls, Math.round(total ?? 0), Math.round(p95 ?? 0)
        ])
      }
    ]
  };
}

/** What a run is compared with. */
export interface Base {
  readonly run: Run;
  /** For times: the next run of the same code, if `run` was the first of its code. */
  readonly timed: Run;
  readonly isFirst: boolean; // `timed` was the first run of its code, as far as is known
}

/**
 * The run with which `after` is compared. The first run of a code is often slower, because it loads
 * and compiles what later runs have.
 */
export function baseOf(run: Run, after: Run, runs: readonly Run[]): Base {
  const at = runs.findIndex(({ id }) => id === run.id);
  const isFirst = isFirstOfCode(run, runs);
  const later = isFirst ? runs.slice(at + 1) : [];
  const timed = later.find(({ code, id }) => code === run.code && id !== after.id);
  const inTime = timed && runs.indexOf(timed) < runs.findIndex(({ id }) => id === after.id);
  return inTime ? { run, timed, isFirst: false } : { run, timed: run, isFirst };
}

/** Whether no earlier run of the cell had the code of `run`. */
export function isFirstOfCode({ id, code }: Run, runs: readonly Run[]): boolean {
  const at = runs.findIndex(run => run.id === id);
  return at >= 0 && code !== null && runs.findIndex(run => run.code === code) === at;
}

/** How the time of a call of a site went in the last runs, without the site's first one. */
export interface Trend {
  readonly times: readonly number[]; // per call, in nanoseconds, oldest first; without unknown ones
  readonly ratio: number; // of the last to the median of those before
  readonly verdict: 'slower' | 'faster' | ''; // empty: much as before
}

/**
 * The trends of `sites`, by place; `runs` end with that of the sites. The first run of each site is
 * left out: whatever it had to load or to compile was missing only then.
 */
export function trendsOf(runs: readonly Run[], sites: readonly Site[]): Map<number, Trend> {
  const own = sites.map(site => runSite(site));
  const times: number[][] = own.map(() => []);
  for (const run of runs.slice(0, -1)) {
    for (const { before, after } of pairsOf(run.sites, own)) {
      if (before?.calls && after) {
        times[own.indexOf(after)]!.push((before.total ?? 0) / before.calls);
      }
    }
  }
  const trends = new Map<number, Trend>();
  own.forEach(({ calls, total }, place) => {
    const warm = times[place]!.slice(1);
    if (calls && total !== null && warm.length) {
      trends.set(place, trendOf(warm, total / calls, calls));
    }
  });
  return trends;
}

/**
 * Compares the time of a call in the last run, which made `calls`, with that in the runs before. It
 * is slower or faster only if it is outside of all of them and differs much from their median: times
 * vary from run to run.
 */
export function trendOf(before: readonly number[], last: number, calls: number): Trend {
  const sorted = [...before].sort((a, b) => a - b);
  const middle = [(sorted.length - 1) / 2, sorted.length / 2].map(at => sorted[Math.floor(at)]!);
  const median = (middle[0]! + middle[1]!) / 2;
  const ratio = last / Math.max(median, 1);
  const much = Math.abs(last - median) * calls >= LEAST_NS;
  const slower = much && ratio >= CHANGE && last > sorted.at(-1)!;
  const faster = much && ratio <= 1 / CHANGE && last < sorted[0]!;
  return { times: [...before, last], ratio, verdict: slower ? 'slower' : faster ? 'faster' : '' };
}
