/** Reads what the kernel sends about a running cell: its progress, and the notice that it hangs. */

import { amount, listOf, objectOf, or, orNull, text, whole, type Read } from './fields.js';
import { NAME, SENTENCE } from './known.js';
import { readSite } from './site.js';

const MOST_SITES = 2_000;
const MOST_RUNNING = 100;
const LONGEST = 20_000; // characters of text or stacks

const readRunning = objectOf({
  function: text(NAME),
  where: text(NAME),
  element: whole(-1), // -1: no element
  thread: text(NAME),
  elapsed_ns: amount
});
export interface RunningCall extends Read<typeof readRunning> {}

const readProgress = objectOf({
  elapsed_ns: amount,
  since_first_ns: amount, // since the first call began; 0: none has
  calls: whole(),
  rate: amount, // calls per second, recently
  expected: orNull(whole()), // calls of the runs so far; null: unknown
  run: whole(), // the number of the run under way, whose calls `expected` are; 0: those of all runs
  running: listOf(readRunning, MOST_RUNNING), // those that have been running for some time
  sites: listOf(readSite, MOST_SITES),
  not_sent: whole() // calls left out of the timeline to limit the load on the kernel
});
export interface Progress extends Read<typeof readProgress> {}

/** Throws `BadRecording` if the data does not match `Progress`. */
export function parseProgress(data: unknown): Progress {
  return readProgress(data, 'progress');
}

const readHang = objectOf({
  title: or(text(SENTENCE), ''), // empty: the cell goes on
  text: or(text(LONGEST), ''), // a paragraph on each host call
  stacks: or(text(LONGEST), '')
});
export interface Hang extends Read<typeof readHang> {}

/** The notice; null if the cell goes on. Throws `BadRecording` if the data is malformed. */
export function parseHang(data: unknown): Hang | null {
  const hang = readHang(data, 'hang');
  return hang.title ? hang : null;
}
