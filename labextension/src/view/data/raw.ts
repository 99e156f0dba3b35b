/** The calls of a view in the raw layout, and how they get into a store. */

import { BadRecording } from './parse/recording.js';
import type { Store } from './store.js';
import { AT_ONCE, pause } from './pause.js';
import type { SavedCalls } from './schema.js';
import { unpack, type RawCalls } from './unpack.js';

export type { RawCalls } from './unpack.js';

/** The calls of a view: those that the kernel sent, or the saved ones; null: there are none. */
export async function callsOf(
  saved: SavedCalls | null,
  sent: RawCalls | null
): Promise<RawCalls | null> {
  return sent ?? (saved && (await unpack(saved)));
}

/** Adds calls to a store. Throws `BadRecording` if they are malformed. */
export function appendRaw(store: Store, raw: RawCalls, baseNs = 0): void {
  check(raw, baseNs);
  store.calls.append(raw, baseNs);
}

/** As `appendRaw`, without blocking the page, however many calls there are. */
export async function appendInSteps(store: Store, raw: RawCalls): Promise<void> {
  check(raw, 0);
  const { calls } = store;
  for (let first = 0; first < raw.rows; first += AT_ONCE) {
    if (first > 0) {
      await pause();
    }
    const base = first > 0 ? calls.start(calls.length - 1) : 0;
    const next = Math.min(first + AT_ONCE, raw.rows);
    calls.append(raw, base, first, next);
  }
}

function check(raw: RawCalls, baseNs: number): void {
  const whole = Number.isSafeInteger(raw.rows) && raw.rows >= 0;
  if (!whole || !(raw.unit_ns > 0) || !Number.isFinite(raw.unit_ns) || !Number.isFinite(baseNs)) {
    throw new BadRecording(
      `the calls have an invalid number of rows or time unit: ${raw.rows} × ${raw.unit_ns} ns.`
    );
  }
}
