/** Calls on their variant into a store, from wherever they came. */

import { BadRecording } from './parse-fields.js';
import type { Store } from './store.js';
import type { RawCalls } from './unpack.js';

export type { RawCalls } from './unpack.js';

/** Adds calls to a store. Throws `BadRecording` where they are not what they claim to be. */
export function appendRaw(store: Store, raw: RawCalls, baseNs = 0): void {
  const whole = Number.isSafeInteger(raw.rows) && raw.rows >= 0;
  if (!whole || !(raw.unit_ns > 0) || !Number.isFinite(raw.unit_ns) || !Number.isFinite(baseNs)) {
    throw new BadRecording(
      `calls come in whole rows and positive units of time, not ${raw.rows} × ${raw.unit_ns} ns.`
    );
  }
  store.calls.append(raw.data, raw.rows, raw.unit_ns, baseNs);
}
