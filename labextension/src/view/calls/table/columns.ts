/** The columns of the table: their texts and sort keys. */

import { elementOf, errorOf, shapesOf, siteOf, startWords, threadName } from '../../data/call.js';
import type { Store } from '../../data/store.js';
import { numberWords, timeWords } from '../../data/words.js';

export interface Column {
  readonly name: string; // of its class: jaxcb-table-<name>
  readonly title: string;
  readonly pixels: number; // minimum width
  readonly share: number; // of the remaining width
  readonly text: (row: number) => string;
  /** Returns the function from rows to sort keys, not negative; called once for each sorting. */
  readonly key: () => (row: number) => number;
  /** Whether rows differ in this column, else it is hidden. Called when there are new rows. */
  readonly differs?: () => boolean;
}

/** All columns of the table, whether or not rows differ in them. */
export function columnsOf(store: Store): Column[] {
  const { calls } = store;
  const shapes = () => store.labels.variants.map(variant => variant.shapes);
  let tried = 0; // rows without element
  const hasElements = (): boolean => {
    while (tried < calls.length && calls.element(tried) < 0) {
      tried++;
    }
    return tried < calls.length;
  };
  return [{
    name: 'number', title: '#', pixels: 74, share: 0,
    text: row => numberWords(row + 1),
    key: () => row => row
  }, {
    name: 'site', title: 'Site', pixels: 100, share: 1.6,
    text: row => siteOf(store, row),
    key: () => ranked(store.labels.sites, row => store.site(row) ?? -1),
    differs: () => store.labels.sites.length > 1
  }, {
    name: 'element', title: 'Element', pixels: 78, share: 0,
    text: row => elementOf(store, row),
    key: () => row => calls.element(row) + 1,
    differs: hasElements
  }, {
    name: 'start', title: 'Start', pixels: 104, share: 0,
    text: row => startWords(calls.start(row), calls.start(calls.length - 1)),
    key: () => row => calls.start(row)
  }, {
    name: 'duration', title: 'Duration', pixels: 94, share: 0,
    text: row => timeWords(calls.duration(row)),
    key: () => row => calls.duration(row)
  }, {
    name: 'thread', title: 'Thread', pixels: 110, share: 1,
    text: row => threadName(store, calls.thread(row)),
    key: () => ranked(store.labels.threads, row => calls.thread(row)),
    differs: () => store.labels.threads.length > 1
  }, {
    name: 'shapes', title: 'Shapes', pixels: 190, share: 1.6,
    text: row => shapesOf(store, row),
    key: () => ranked(shapes(), row => calls.variant(row)),
    differs: () => new Set(shapes()).size > 1
  }, {
    name: 'error', title: 'Error', pixels: 120, share: 1.6,
    text: row => errorOf(store, row),
    key: () => ranked(['', ...store.labels.errors], row => calls.error(row)),
    differs: () => store.labels.errors.length > 0
  }, {
    name: 'sample', title: 'Values', pixels: 150, share: 1.6,
    text: row => store.labels.samples.get(row) ?? '',
    key: () => {
      const { samples } = store.labels;
      const places = new Map([...samples.keys()].map((row, place) => [row, place + 1]));
      return ranked(['', ...samples.values()], row => places.get(row) ?? 0);
    },
    differs: () => store.labels.samples.size > 0
  }];
}

/**
 * The keys of rows by the rank of their texts in natural order (`worker-2` before `worker-10`);
 * rows without a text come last.
 */
function ranked(texts: readonly string[], place: (row: number) => number): (row: number) => number {
  const { compare } = new Intl.Collator('en', { numeric: true });
  const ranks = new Map([...new Set(texts)].sort(compare).map((text, rank) => [text, rank]));
  const rank = texts.map(text => ranks.get(text)!);
  return row => rank[place(row)] ?? Infinity;
}

// Where they do not fit:
const LEFT_OUT = ['shapes', 'thread', 'start', 'sample', 'element', 'error'];

/** The columns without the first of `LEFT_OUT`, until they fit into a width (0: unknown). */
export function fitting(columns: readonly Column[], width: number): readonly Column[] {
  let shown = columns;
  for (const left of LEFT_OUT) {
    if (width > 0 && leastWidth(shown) > width) {
      shown = shown.filter(({ name }) => name !== left);
    }
  }
  return shown;
}

export function leastWidth(columns: readonly Column[]): number {
  return columns.reduce((sum, { pixels }) => sum + pixels, 0);
}
