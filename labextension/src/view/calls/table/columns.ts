/** The columns of the table: their texts and sort keys. */

import { errorOf, elementOf, shapesOf, siteOf, startWords, threadName } from '../../data/call.js';
import type { Store } from '../../data/store.js';
import { ranks } from './sort.js';
import { numberWords, timeWords, variantShapes } from '../../data/words.js';

export interface Column {
  readonly name: string; // of its class: jaxcb-table-<name>
  readonly title: string;
  readonly pixels: number; // minimum width
  readonly share: number; // of the remaining width
  /** Whether rows differ in this column, else it is hidden. Called when there are new rows. */
  readonly differs: () => boolean;
  readonly text: (row: number) => string;
  /** Returns the function from rows to sort keys; called once for each sorting. */
  readonly key: () => (row: number) => number;
}

/** All columns of the table, whether or not rows differ in them. */
export function columnsOf(store: Store): Column[] {
  const { calls } = store;
  const whole = () => (calls.length ? calls.start(calls.length - 1) : 0);
  const always = () => true;
  const sample = (row: number) => store.labels.samples.get(row) ?? '';
  return [
    {
      name: 'number',
      title: '#',
      pixels: 74,
      share: 0,
      differs: always,
      text: row => numberWords(row + 1),
      key: () => row => row
    },
    {
      name: 'site',
      title: 'Site',
      pixels: 100,
      share: 1.6,
      differs: () => store.labels.sites.length > 1,
      text: row => siteOf(store, row),
      key: () => byRank(store.labels.sites, row => store.site(row) ?? -1)
    },
    {
      name: 'element',
      title: 'Element',
      pixels: 78,
      share: 0,
      differs: someRow(store, row => calls.element(row) >= 0),
      text: row => elementOf(store, row),
      key: () => row => calls.element(row)
    },
    {
      name: 'start',
      title: 'Start',
      pixels: 104,
      share: 0,
      differs: always,
      text: row => startWords(calls.start(row), whole()),
      key: () => row => calls.start(row)
    },
    {
      name: 'duration',
      title: 'Duration',
      pixels: 94,
      share: 0,
      differs: always,
      text: row => timeWords(calls.duration(row)),
      key: () => row => calls.duration(row)
    },
    {
      name: 'thread',
      title: 'Thread',
      pixels: 110,
      share: 1,
      differs: () => store.labels.threads.length > 1,
      text: row => threadName(store, calls.thread(row)),
      key: () => byRank(store.labels.threads, row => calls.thread(row))
    },
    {
      name: 'shapes',
      title: 'Shapes',
      pixels: 190,
      share: 1.6,
      differs: () => new Set(store.labels.variants.map(variantShapes)).size > 1,
      text: row => shapesOf(store, row),
      key: () => byRank(store.labels.variants.map(variantShapes), row => calls.variant(row))
    },
    {
      name: 'error',
      title: 'Error',
      pixels: 120,
      share: 1.6,
      differs: () => store.labels.errors.length > 0,
      text: row => errorOf(store, row),
      key: () => byRank([RETURNED, ...store.labels.errors], row => calls.error(row))
    },
    {
      name: 'sample',
      title: 'Values',
      pixels: 150,
      share: 1.6,
      differs: () => store.labels.samples.size > 0,
      text: sample,
      key: () => sampleKey(store)
    }
  ];
}

const RETURNED = ''; // its rank is before that of every error
const LEFT_OUT = ['shapes', 'thread', 'start', 'sample', 'element', 'error']; // where they do not fit

/** The columns without the first of `LEFT_OUT`, until they fit into a width (0: unknown). */
export function fitting(columns: readonly Column[], width: number): readonly Column[] {
  const out = columns.filter(({ name }) => LEFT_OUT.includes(name));
  out.sort((one, other) => LEFT_OUT.indexOf(one.name) - LEFT_OUT.indexOf(other.name));
  let free = columns.reduce((room, { pixels }) => room - pixels, width);
  const left = new Set<Column>();
  while (width > 0 && free < 0 && out.length > 0) {
    left.add(out[0]!);
    free += out.shift()!.pixels;
  }
  return columns.filter(column => !left.has(column));
}

/** Whether some row passes; each row is checked once, when it is added. */
function someRow(store: Store, passes: (row: number) => boolean): () => boolean {
  let found = false;
  let next = 0;
  return () => {
    while (!found && next < store.calls.length) {
      found = passes(next++);
    }
    return found;
  };
}

/** The keys of rows by the rank of their texts; rows without one come last. */
function byRank(texts: readonly string[], place: (row: number) => number): (row: number) => number {
  const rank = ranks(texts);
  return row => rank[place(row)] ?? Infinity;
}

/** Calls without sample values come first. */
function sampleKey({ labels }: Store): (row: number) => number {
  const places = new Map([...labels.samples.keys()].map((row, place) => [row, place + 1]));
  return byRank(['', ...labels.samples.values()], row => places.get(row) ?? 0);
}
