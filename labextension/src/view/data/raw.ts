/** Adds calls in the raw layout to a store. */

import { BadRecording } from './parse-fields.js';
import type { Store } from './store.js';
import type { RawCalls } from './unpack.js';

export type { RawCalls } from './unpack.js';

/** Adds calls to a store. Throws `BadRecording` if they are malformed. */
export function appendRaw(store: Store, raw: RawCalls, baseNs = 0): void {
  const whole = Number.isSafeInteger(raw.rows) && raw.rows >= 0;
  if (!whole || !(raw.unit_ns > 0) || !Number.isFinite(raw.unit_ns) || !Number.isFinite(baseNs)) {
    throw new BadRecording(
      `the calls have an invalid number of rows or time unit: ${raw.rows} × ${raw.unit_ns} ns.`
    );
  }
  store.calls.append(raw.data, raw.rows, raw.unit_ns, baseNs);
}
