/**
 * A recording as JSON for other programs: call sites and calls, with names instead of numbers.
 *
 * Python reads it too (`recording/files/_view_json.py`), for tables and timelines.
 */

import { elementOf, errorOf, threadName } from '../data/call.js';
import { labelsOf } from '../data/labels.js';
import { appendRaw, type RawCalls } from '../data/raw.js';
import type { Aval, Facts, Measured } from '../data/schema.js';
import { Store } from '../data/store.js';

const PIECE = 5_000; // calls formatted at a time: tens of milliseconds

/**
 * The pieces of a JSON file, formatted with pauses in which the page can react. Each is a Blob
 * already, because encoding all of them at once would take seconds.
 *
 * Throws Error with a one-sentence message if the calls are malformed.
 */
export async function toJson(
  facts: Facts,
  measured: Measured,
  raw: RawCalls | null
): Promise<Blob[]> {
  const { schema, sites } = facts;
  const { environment, compilations } = measured;
  const store = new Store(labelsOf(facts, measured));
  if (raw) {
    appendRaw(store, raw);
  }
  const head = JSON.stringify({ schema, environment, compilations, sites });
  const pieces = [new Blob([`${head.slice(0, -1)},\n"calls":[\n`])];
  const rows = store.calls.length;
  for (let begin = 0; begin < rows; begin += PIECE) {
    const calls: string[] = [];
    for (let row = begin; row < Math.min(begin + PIECE, rows); row++) {
      calls.push(JSON.stringify(callOf(store, facts, row)));
    }
    pieces.push(new Blob([begin ? ',\n' : '', calls.join(',\n')]));
    await new Promise(resolve => setTimeout(resolve));
  }
  return [...pieces, new Blob(['\n]}\n'])];
}

/** One host call; times in nanoseconds since the first call. */
function callOf(store: Store, { sites }: Facts, row: number): object {
  const { calls, labels } = store;
  const site = sites[store.site(row) ?? -1];
  const variant = labels.variants[calls.variant(row)];
  return {
    start_ns: calls.start(row),
    duration_ns: calls.duration(row),
    element: elementOf(store, row), // empty: none
    crossing: calls.crossing(row), // null: its own, or not known
    thread: threadName(store, calls.thread(row)),
    error: errorOf(store, row), // empty: it returned
    function: site?.function ?? '',
    flavor: site?.flavor ?? '',
    where: site?.where ?? '',
    operands: avalWords(variant?.operands ?? []), // "float32[3] int32[]", as one call sees them
    results: avalWords(variant?.results ?? [])
  };
}

function avalWords(avals: readonly Aval[]): string {
  return avals.map(([shape, dtype]) => `${dtype}[${shape.join(',')}]`).join(' ');
}
