/** Reads the progress of a running cell, which the kernel sends ten times a second. */

import { amount, listOf, objectOf, orNull, text, whole, type Read } from './fields.js';
import { NAME } from './known.js';
import { readSite } from './site.js';

const MOST_SITES = 2_000;
const MOST_RUNNING = 100;

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
  running: listOf(readRunning, MOST_RUNNING), // those that have been running for some time
  sites: listOf(readSite, MOST_SITES),
  not_sent: whole() // calls left out of the timeline to limit the load on the kernel
});
export interface Progress extends Read<typeof readProgress> {}

/** Throws `BadRecording` if the data does not match `Progress`. */
export function parseProgress(data: unknown): Progress {
  return readProgress(data, 'progress');
}
