/** Stores with calls, for the tests. */

import { ROW_BYTES, type Variant } from '../../../src/view/data/schema.js';
import type { RawCalls } from '../../../src/view/data/raw.js';
import type { Labels } from '../../../src/view/data/labels.js';
import { Store } from '../../../src/view/data/store.js';
import type { Figures } from '../../../src/view/calls/distribution/figures.js';
import { aVariant } from '../recordings.js';

export interface Call {
  readonly start: number;
  readonly duration?: number;
  readonly element?: number;
  readonly variant?: number;
  readonly thread?: number;
  readonly error?: number;
  readonly crossing?: number;
}

export const VARIANT: Variant = aVariant('(3,) → ()');

export const LABELS: Labels = {
  sites: ['bessel, line 3', 'lookup, model.py:12'],
  colours: [0, 1],
  siteOfVariant: [0, 1],
  variants: [VARIANT, VARIANT],
  threads: ['MainThread', 'worker-1'],
  errors: ['ValueError: no luck'],
  samples: new Map(),
  notFinite: new Map(),
  compilations: []
};

export const NO_FIGURES: Figures = { sites: [], edges: [], total: 0, threads: new Map() };

/** Calls that are sorted by start; times are in nanoseconds. Those without a crossing have number 0. */
export function columns(calls: readonly Call[]): RawCalls {
  const rows = calls.length;
  const data = new DataView(new ArrayBuffer(rows * ROW_BYTES));
  calls.forEach((call, row) => {
    data.setUint32(4 * row, call.start - (calls[row - 1]?.start ?? 0), true);
    data.setUint32(4 * (rows + row), call.duration ?? 10, true);
    data.setInt32(4 * (2 * rows + row), call.element ?? -1, true);
    data.setUint16(12 * rows + 2 * row, call.variant ?? 0, true);
    data.setUint16(14 * rows + 2 * row, call.thread ?? 0, true);
    data.setUint16(16 * rows + 2 * row, call.error ?? 0, true);
  });
  if (!calls.some(call => call.crossing !== undefined)) {
    return { rows, unit_ns: 1, data };
  }
  const crossings = new DataView(new ArrayBuffer(4 * rows));
  calls.forEach((call, row) => crossings.setUint32(4 * row, call.crossing ?? 0, true));
  return { rows, unit_ns: 1, data, crossings };
}

export function storeOf(calls: readonly Call[], labels: Partial<Labels> = {}): Store {
  const store = new Store({ ...LABELS, ...labels });
  store.calls.append(columns(calls));
  return store;
}
