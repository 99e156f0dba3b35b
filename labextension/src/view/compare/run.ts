/** A run of a cell, by the figures of its sites. */

import type { Consequence, Facts, Measured, Site } from '../data/schema.js';

export interface Run {
  readonly id: string; // of the recording; empty: unknown
  readonly number: number; // in the prompt; 0: unknown
  readonly code: string | null; // of the cell; null: unknown
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
  readonly p95: number | null; // of the calls
}

/** The run of a recording, as far as the recording says. */
export function runOf(facts: Facts, measured: Measured): Run {
  return { id: measured.id, number: 0, code: null, sites: facts.sites.map(runSite) };
}

/** What is kept of a site. */
export function runSite(site: Site): RunSite {
  const { function: name, flavor, where, numbered, source, consequence, calls, host_ns: total } = site;
  return { function: name, flavor, where, numbered, source, consequence, calls, total, p95: null };
}
