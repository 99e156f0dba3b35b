/** Reads the progress messages of a running cell. */

import { amount, Fields, listOf, orNull, text, whole } from './fields.js';
import { NAME, readSite } from './site.js';
import type { Progress, RunningCall } from '../schema.js';

const MOST_SITES = 2_000;
const MOST_RUNNING = 100;

/** Throws `BadRecording` if the data does not match `Progress`. */
export function parseProgress(data: unknown): Progress {
  const progress = new Fields(data, 'progress');
  return {
    elapsed_ns: progress.get('elapsed_ns', amount),
    since_first_ns: progress.get('since_first_ns', amount),
    calls: progress.get('calls', whole()),
    rate: progress.get('rate', amount),
    expected: progress.get('expected', orNull(whole())),
    running: progress.get('running', listOf(readRunning, MOST_RUNNING)),
    sites: progress.get('sites', listOf(readSite, MOST_SITES)),
    not_sent: progress.get('not_sent', whole())
  };
}

function readRunning(value: unknown, path: string): RunningCall {
  const call = new Fields(value, path);
  return {
    function: call.get('function', text(NAME)),
    where: call.get('where', text(NAME)),
    element: call.get('element', whole(-1)),
    thread: call.get('thread', text(NAME)),
    elapsed_ns: call.get('elapsed_ns', amount)
  };
}
