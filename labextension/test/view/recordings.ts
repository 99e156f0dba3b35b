/** Small recordings for the tests, as parsed from JSON. */

import { conform } from '../../src/view/data/parse/conform.js';
import type { Facts, Measured, Progress, Site, Variant } from '../../src/view/data/schema.js';
import type { RawCalls } from '../../src/view/data/raw.js';
import { ROW_BYTES } from '../../src/view/data/schema.js';

export function aVariant(shapes = '() → (5,)', more: Partial<Variant> = {}): Variant {
  return {
    shapes,
    arrays: '',
    sizes: '',
    methods: '',
    vmaps: '',
    elements: '',
    stopped: '',
    placed: '',
    count: '',
    calls: 1,
    needed: 0,
    batch: 0,
    diagram: undefined,
    ...more
  };
}

/** A variant with a vmap over 4 elements, which makes one call. */
export const BATCHED = aVariant('(4,) → (4,)', {
  sizes: '4',
  methods: 'expand_dims',
  vmaps: 'vmap 4, expand_dims',
  elements: '1 call for 4 elements',
  diagram: {
    vmaps: ['vmap 4'],
    receives: 'one call receives',
    rows: [
      ['z', [['batched', 4]], [], '(4,)', 'float32'],
      ['result', [['batched', 4]], [], '(4,)', 'float32']
    ],
    results: 1
  }
});

// What a saved output leaves out.
const SITE = conform('Facts', { schema: 1, sites: [{}] })[0].sites[0]!;

export function aSite(more: Partial<Site> = {}): Site {
  return {
    ...SITE,
    function: 'bessel',
    flavor: 'pure',
    where: 'line 4',
    line: 4,
    column: 2,
    source: 'return bessel(1, x)',
    consequence: more.errors?.length ? 'raised' : (more.status ?? 'kept'),
    calls: 1,
    crossings: 1,
    expected: 1,
    written: 1,
    shapes: [aVariant()],
    cell_line: more.line ?? 4,
    ...more
  };
}

export function unusedSite(more: Partial<Site> = {}): Site {
  return aSite({
    where: 'line 3',
    line: 3,
    status: 'unused',
    reason: 'nothing uses its result',
    advice: 'return or use the result',
    calls: 0,
    crossings: 0,
    expected: 0,
    elided: 1,
    shapes: [],
    ...more
  });
}

export function someFacts(sites: Site[] = [aSite()], more: Partial<Facts> = {}): Facts {
  return { schema: 1, headline: [['kept', 'bessel']], sites, full: '', ahead: false, not_observed: 0, ...more };
}

export function someMeasured(more: Partial<Measured> = {}): Measured {
  return { ...conform('Measured', {})[0], ...more };
}

/** The metadata of an output with these sites. */
export function someMetadata(sites: Site[], more: Partial<Measured> = {}): object {
  return { ...someMeasured(more), sites };
}

export function someProgress(more: Partial<Progress> = {}): Progress {
  return {
    elapsed_ns: 3.2e9,
    since_first_ns: 3e9,
    calls: 431,
    rate: 2310,
    expected: 10_000,
    run: 0,
    running: [],
    sites: [],
    not_sent: 0,
    not_observed: '',
    ...more
  };
}

/** `rows` calls of 100 ns each, all of one variant and on one thread. */
export function someCalls(rows: number): RawCalls {
  const data = new DataView(new ArrayBuffer(rows * ROW_BYTES));
  for (let row = 0; row < rows; row++) {
    data.setUint32(4 * row, 1, true);
    data.setUint32(4 * (rows + row), 1, true);
  }
  return { rows, unit_ns: 100, data };
}

/**
 * A deep copy with one field changed: `changed(facts, 'sites.0.calls', -1)`.
 *
 * If `value` is undefined, the field is deleted.
 */
export function changed(data: unknown, path: string, value: unknown): unknown {
  const copy = structuredClone(data);
  const keys = path.split('.');
  const last = keys.pop()!;
  const holder = keys.reduce<any>((inner, key) => inner[key], copy);
  if (value === undefined) {
    delete holder[last];
  } else {
    holder[last] = value;
  }
  return copy;
}
