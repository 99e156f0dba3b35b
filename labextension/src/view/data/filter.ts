/** Filters of host calls. */

import type { Calls } from './columns.js';
import { hasFailed, type Labels } from './labels.js';
import { searching, type Test } from './search.js';

/** From a duration to before another, in nanoseconds. */
export type Durations = readonly [from: number, to: number];

/** Which calls the table and the timeline show; `null`: all. */
export interface Filter {
  readonly site: number | null;
  readonly thread: number | null;
  readonly errors: boolean; // only calls that failed
  readonly notFinite: boolean; // only calls that returned NaN or infinity
  readonly durations: Durations | null;
  readonly text: string; // words that occur in the fields of a call; empty: all
}

export const EVERYTHING: Filter = {
  site: null,
  thread: null,
  errors: false,
  notFinite: false,
  durations: null,
  text: ''
};

/** The tests that a call passes if a filter shows it; none: it shows every call. */
export function testsOf(filter: Filter, labels: Labels, calls: Calls): Test[] {
  const { site, thread, errors, notFinite, durations, text } = filter;
  const tests: Test[] = [];
  if (site !== null) {
    tests.push(row => labels.siteOfVariant[calls.variant(row)] === site);
  }
  if (thread !== null) {
    tests.push(row => calls.thread(row) === thread);
  }
  if (errors) {
    tests.push(row => hasFailed({ calls, labels }, row));
  }
  if (notFinite) {
    tests.push(row => labels.notFinite.has(row));
  }
  if (durations) {
    const [from, to] = durations;
    tests.push(row => calls.duration(row) >= from && calls.duration(row) < to);
  }
  return [...tests, ...searching(text, labels, calls)];
}
