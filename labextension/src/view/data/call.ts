/** Texts about one host call, for the table and the timeline. */

import { notFiniteWords } from './not-finite.js';
import phrases from './phrases.json';
import type { Store } from './store.js';
import { callWords, failedWords, joined, numberWords, statusWords, timeWords } from './words.js';

/** `bessel, line 3`. */
export function siteOf(store: Store, row: number): string {
  const site = store.site(row);
  return site === null ? 'unknown site' : (store.labels.sites[site] ?? `site ${site}`);
}

/** `bessel`: the site's function alone. */
export function functionOf(store: Store, row: number): string {
  return siteOf(store, row).split(', ', 1)[0]!;
}

/** `2`; empty: no element. */
export function elementOf(store: Store, row: number): string {
  const element = store.calls.element(row);
  return element < 0 ? '' : String(element);
}

/** `9 calls in 5 ms`: what the crossing of a call made; empty: nothing else, or unknown. */
export function crossingOf(store: Store, row: number): string {
  const made = store.calls.crossingOf(row);
  return made && made.calls > 1 ? `${callWords(made.calls)} in ${timeWords(made.duration)}` : '';
}

/** The name of a thread. */
export function threadName(store: Store, thread: number): string {
  return store.labels.threads[thread] || `thread ${thread}`;
}

/** `() → (5,)`; empty: unknown. */
export function shapesOf(store: Store, row: number): string {
  const variant = store.labels.variants[store.calls.variant(row)];
  return variant?.shapes ?? '';
}

/** `ValueError: no luck`; empty: it returned. */
export function errorOf(store: Store, row: number): string {
  const error = store.calls.error(row);
  return error === 0 ? '' : store.labels.errors[error - 1] || 'failed';
}

/** `✕ ValueError: no luck`, `■ stopped by you`; empty: it returned. */
export function endOf(store: Store, row: number): string {
  const error = errorOf(store, row);
  return error === phrases.words.stopped ? statusWords('stopped') : error && failedWords(error);
}

const SECONDS = { unit: 's', scale: 1e9, digits: 6, most: Infinity };
const START_UNITS = [
  { unit: 'µs', scale: 1e3, digits: 1, most: 1e6 },
  { unit: 'ms', scale: 1e6, digits: 4, most: 1e9 }
];

/** `12.3450 ms`, in a unit that depends only on the length `whole` of the recording. */
export function startWords(ns: number, whole: number): string {
  const { unit, scale, digits } = START_UNITS.find(({ most }) => whole < most) ?? SECONDS;
  return `${(ns / scale).toFixed(digits)} ${unit}`;
}

/** As `startWords`; what came before the first call is `3 ms before the first call`. */
export function sinceFirstCall(ns: number, whole: number): string {
  return ns < 0 ? `${timeWords(-ns)} before the first call` : startWords(ns, whole);
}

/** One call on one line: `bessel, line 3 · element 2 · 41 µs at 1.2500 ms · MainThread`. */
export function callLine(store: Store, row: number, whole: number): string {
  const element = elementOf(store, row);
  const crossing = crossingOf(store, row);
  const { calls } = store;
  return joined([
    `call ${numberWords(row + 1)}`,
    siteOf(store, row),
    element && `element ${element}`,
    crossing && `crossing of ${crossing}`,
    `${timeWords(calls.duration(row))} at ${startWords(calls.start(row), whole)}`,
    shapesOf(store, row),
    threadName(store, calls.thread(row)),
    endOf(store, row),
    notFiniteWords(store.labels.notFinite, row)
  ]);
}
