/** Small recordings for the tests, as parsed from JSON. */

import type { Axes, Facts, Level, Measured, Progress, Site, Variant } from '../../src/view/data/schema.js';
import { siteFacts } from '../../src/view/data/parse/old.js';
import { unmeasured } from '../../src/view/data/parse/site.js';
import { NOT_MEASURED } from '../../src/view/data/parse/parse.js';
import type { RawCalls } from '../../src/view/data/raw.js';
import { ROW_BYTES } from '../../src/view/data/schema.js';

export function aVariant(
  operands: number[][],
  results: number[][],
  levels: Level[] = [],
  more: Partial<Variant> = {}
): Variant {
  return {
    operands: operands.map(shape => [shape, 'float32'] as const),
    results: results.map(shape => [shape, 'float32'] as const),
    operand_names: [],
    result_names: [],
    levels,
    axes: axesOf({ levels, ...more }),
    mask: undefined,
    stopped: undefined,
    calls: 1,
    shards: 0,
    devices: [],
    gathered_bytes: 0,
    ...more
  };
}

/** The axes that the methods of the levels stand for. */
function axesOf(variant: Partial<Variant>): readonly Axes[] {
  return (siteFacts({ shapes: [variant] }) as { shapes: [Variant] }).shapes[0].axes;
}

export function aSite(more: Partial<Site> = {}): Site {
  return {
    function: 'bessel',
    flavor: 'pure',
    where: 'line 4',
    line: 4,
    column: 2,
    cell: true,
    source: 'return bessel(1, x)',
    status: 'kept',
    consequence: more.errors?.length ? 'raised' : (more.status ?? 'kept'),
    word: '',
    reason: '',
    advice: '',
    calls: 1,
    crossings: 1,
    expected: 1,
    written: 1,
    elided: 0,
    batch_calls: 0,
    notes: [],
    errors: [],
    shapes: [aVariant([[]], [[5]])],
    sample_values: [],
    sample_arrays: [],
    ...unmeasured(more.line ?? 4),
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
  return { schema: 1, headline: [['kept', 'bessel']], sites, overflow: 0, not_kept: 0, ahead: false, ...more };
}

export function someMeasured(more: Partial<Measured> = {}): Measured {
  return { ...NOT_MEASURED, ...more };
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
