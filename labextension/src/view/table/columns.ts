/** The columns of the table: their texts and sort keys. */

import { errorOf, elementOf, shapesOf, siteOf, startWords, threadName } from '../data/call.js';
import type { Store } from '../data/store.js';
import { ranks } from './sort.js';
import { timeWords, variantShapes } from '../data/words.js';

export interface Column {
  readonly name: string; // of its class: jaxcb-table-<name>
  readonly title: string;
  readonly text: (row: number) => string;
  /** Returns the function from rows to sort keys; called once for each sorting. */
  readonly key: () => (row: number) => number;
}

/** The columns of the table; the last one, for sample values, only if there are some. */
export function columnsOf(store: Store, sample_values: (row: number) => string): Column[] {
  const { calls } = store;
  const whole = () => (calls.length ? calls.start(calls.length - 1) : 0);
  const texts: readonly (readonly [string, string, Column['text'], Column['key']])[] = [
    ['number', '#', row => (row + 1).toLocaleString('en-US'), () => row => row],
    ['site', 'Site', row => siteOf(store, row), () => siteKey(store)],
    ['element', 'Element', row => elementOf(store, row), () => row => calls.element(row)],
    ['thread', 'Thread', row => threadName(store, calls.thread(row)), () => threadKey(store)],
    [
      'start',
      'Start',
      row => startWords(calls.start(row), whole()),
      () => row => calls.start(row)
    ],
    [
      'duration',
      'Duration',
      row => timeWords(calls.duration(row)),
      () => row => calls.duration(row)
    ],
    ['shapes', 'Shapes', row => shapesOf(store, row), () => variantKey(store)],
    ['error', 'Error', row => errorOf(store, row), () => errorKey(store)],
    ['sample', 'Values', sample_values, () => textKey(store, sample_values)]
  ];
  return texts.map(([name, title, text, key]) => ({ name, title, text, key }));
}

function siteKey(store: Store): (row: number) => number {
  const rank = ranks(store.labels.sites);
  return row => rank[store.site(row) ?? -1] ?? Infinity;
}

function threadKey(store: Store): (row: number) => number {
  const rank = ranks(store.labels.threads);
  return row => rank[store.calls.thread(row)] ?? Infinity;
}

function variantKey(store: Store): (row: number) => number {
  const rank = ranks(store.labels.variants.map(variantShapes));
  return row => rank[store.calls.variant(row)] ?? Infinity;
}

/** Calls that returned come before those that failed. */
function errorKey(store: Store): (row: number) => number {
  const rank = ranks(store.labels.errors);
  return row => {
    const error = store.calls.error(row);
    return error === 0 ? -1 : (rank[error - 1] ?? Infinity);
  };
}

function textKey(store: Store, text: (row: number) => string): (row: number) => number {
  const rank = ranks(Array.from({ length: store.calls.length }, (_, row) => text(row)));
  return row => rank[row]!;
}
