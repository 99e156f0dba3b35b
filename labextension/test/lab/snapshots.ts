/** Snapshots for the tests. */

import { aSite } from '../view/recordings.js';
import { readMessage, type Snapshot } from '../../src/lab/kernel/snapshot.js';

export const SITE = aSite({
  cell_id: 'two',
  cell_line: 3,
  where: 'line 3',
  line: 3,
  column: 4,
  calls: 5,
  host_ns: 41000
});

export const CALLBACK = {
  name: 'bessel',
  flavor: 'pure',
  options: 'vmap_method=expand_dims',
  cell: 'one',
  line: 2,
  where: 'line 2',
  sites: [0],
  calls: 5,
  elided: 0,
  errors: 0,
  host_ns: 41000
};

export const VALUE = {
  cell: 'two',
  line: 3,
  source: SITE.source,
  name: 'y',
  text: 'y mean 0.31 → 0.02',
  bad: false,
  first: false,
  details: ['float32[3] · 20 times', 'min 0 · mean 0.1 · max 1']
};

/** A snapshot message, as the kernel sends it. */
export function message(parts: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    type: 'snapshot',
    schema: 1,
    version: '0.1.0',
    running: false,
    callbacks: [CALLBACK],
    sites: [SITE],
    more_sites: 0,
    values: [],
    cells: { two: 0x0b0e9cb0 },
    ...parts
  };
}

/** The snapshot read from such a message. */
export function snapshot(parts: Record<string, unknown> = {}): Snapshot {
  const read = readMessage(message(parts));
  if (read.type !== 'snapshot') {
    throw new Error(JSON.stringify(read));
  }
  return read.snapshot;
}
