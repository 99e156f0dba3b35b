/** A small profile for the tests, as parsed from JSON. */

import type { Profile } from '../../../src/view/data/schema.js';

/** 1 s in a host function, an XLA operation, two host threads, and nothing. */
export function aProfile(more: Partial<Profile> = {}): Profile {
  return {
    wall_ns: 1e9,
    start_ns: -2e8,
    headline: '1 s: 80 % host functions, 15 % XLA, 5 % idle',
    advice: ['simulate takes 80 % of the time: call it once for the whole batch.'],
    notes: ['Profiling took 2 ms.'],
    kinds: [
      { id: 'host', name: 'host functions', wall_ns: 8e8 },
      { id: 'xla', name: 'XLA', wall_ns: 1.5e8 },
      { id: 'idle', name: 'idle', wall_ns: 5e7 }
    ],
    parts: [
      { kind: 0, name: 'simulate', where: 'line 3', wall_ns: 7e8, busy_ns: 14e8, count: 1000 },
      { kind: 0, name: 'lookup', where: 'model.py:12', wall_ns: 1e8, busy_ns: 1.04e8, count: 2 },
      { kind: 1, name: 'dot_general', where: '', wall_ns: 1e8, busy_ns: 1e8, count: 7 },
      { kind: 1, name: 'other', where: '', wall_ns: 5e7, busy_ns: 5e7, count: 0 },
      { kind: 2, name: 'idle', where: '', wall_ns: 5e7, busy_ns: 5e7, count: 0 }
    ],
    lanes: [
      { name: 'wall time', spans: [0, 1e8, 2, 1e8, 7e8, 0, 8e8, 1e8, 1, 9e8, 5e7, 3, 95e7, 5e7, 4] },
      { name: 'worker 1', spans: [1e8, 7e8, 0] },
      { name: 'cpu:0', spans: [0, 1e8, 2, 9e8, 5e7, 3] }
    ],
    ...more
  };
}
