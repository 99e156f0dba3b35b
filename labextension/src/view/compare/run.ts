/** What is kept of a pinned run: figures by site. */

import { appendInSteps, callsOf, type RawCalls } from '../data/raw.js';
import type { Consequence, Facts, Measured, Site } from '../data/schema.js';
import { labelsOf } from '../data/labels.js';
import { Store } from '../data/store.js';
import { figuresOf, type SiteFigures } from '../calls/distribution/figures.js';

export interface Run {
  readonly id: string; // of the recording; empty: unknown
  readonly number?: number; // in the prompt; absent: unknown
  readonly sites: readonly RunSite[]; // in program order
}

/** Times in nanoseconds; null: unknown. */
export interface RunSite {
  readonly function: string;
  readonly flavor: string;
  readonly where: string;
  readonly numbered?: string; // the same with the numbers of cells
  readonly source: string;
  readonly consequence: Consequence;
  readonly calls: number;
  readonly total: number | null; // in the host function
  readonly p95: number | null; // of the calls whose times the view has
}

/** Resolves to the figures of a recording, without blocking the page. */
export async function runOf(
  facts: Facts,
  measured: Measured,
  raw: RawCalls | null
): Promise<Run> {
  const p95 = await p95BySite(facts, measured, raw);
  const sites = facts.sites.map((site, place) => runSite(site, p95.get(place)));
  return { id: measured.id, sites };
}

/** What is kept of a site. */
export function runSite(site: Site, p95: number | null = null): RunSite {
  const { function: name, flavor, where, numbered, source, consequence, calls, host_ns: total } = site;
  return { function: name, flavor, where, numbered, source, consequence, calls, total, p95 };
}

/** Empty if the calls are not saved or cannot be read, which the view says elsewhere. */
async function p95BySite(
  facts: Facts,
  measured: Measured,
  raw: RawCalls | null
): Promise<ReadonlyMap<number | null, number>> {
  const store = new Store(labelsOf(facts, measured));
  let sites: readonly SiteFigures[] = [];
  try {
    const calls = await callsOf(measured.calls, raw);
    if (calls) {
      await appendInSteps(store, calls);
      sites = (await figuresOf(store)).sites;
    }
  } catch {
    return new Map();
  }
  return new Map(sites.map(({ site, p95 }) => [site, p95]));
}
