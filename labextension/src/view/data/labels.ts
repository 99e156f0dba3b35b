/** The names for the numbers in the columns of calls. */

import { coloursOf } from '../colours.js';
import type { Calls } from './columns.js';
import type { Compilation, Facts, Measured, Variant } from './schema.js';
import { type NotFinite, rowsIn } from './not-finite.js';
import phrases from './phrases.json';
import { placeOf } from './words.js';

export interface Labels {
  readonly sites: readonly string[]; // "bessel, line 3"
  readonly colours: readonly number[]; // by site
  readonly siteOfVariant: readonly number[];
  readonly variants: readonly Variant[]; // empty while the cell is running
  readonly threads: readonly string[];
  readonly errors: readonly string[];
  readonly samples: ReadonlyMap<number, string>; // by row: the sample values of the call
  readonly notFinite: NotFinite;
  readonly compilations: readonly TimedCompilation[]; // those whose start is known
}

export interface TimedCompilation extends Compilation {
  readonly start_ns: number;
}

/** Whether a call failed; one that the user stopped did not. */
export function hasFailed(store: { readonly calls: Calls; readonly labels: Labels }, row: number): boolean {
  const error = store.calls.error(row);
  return error !== 0 && store.labels.errors[error - 1] !== phrases.words.stopped;
}

/** The labels of a complete recording. */
export function labelsOf(facts: Facts, measured: Measured): Labels {
  const notFinite = notFiniteRows(facts);
  return {
    sites: facts.sites.map(site => `${site.function}, ${placeOf(site)}`),
    colours: coloursOf(facts.sites),
    siteOfVariant: facts.sites.flatMap((site, place) => site.shapes.map(() => place)),
    variants: facts.sites.flatMap(site => site.shapes),
    threads: measured.threads,
    errors: measured.errors,
    samples: samplesByRow(facts, notFinite),
    notFinite,
    compilations: measured.compilations.filter(hasStart)
  };
}

function hasStart(compilation: Compilation): compilation is TimedCompilation {
  return typeof compilation.start_ns === 'number';
}

/** Calls that were not sampled have words, too, if they returned NaN or infinity. */
function samplesByRow(
  { sites }: Facts,
  notFinite: NotFinite
): Map<number, string> {
  const words = new Map([...notFinite.keys()].map(row => [row, phrases.words.not_finite]));
  sites.forEach(site =>
    site.sample_values.forEach(([sample], number) => {
      const row = site.sample_rows[number] ?? -1;
      if (row >= 0) {
        words.set(row, sample);
      }
    })
  );
  return words;
}

function notFiniteRows({ sites }: Facts): Map<number, boolean> {
  const found = new Map<number, boolean>();
  for (const { not_finite_rows: made, passed_on_rows: passed } of sites) {
    rowsIn(passed).forEach(row => found.set(row, true));
    rowsIn(made).forEach(row => found.set(row, false));
  }
  return found;
}
