/** Outputs that earlier versions saved, in today's form; what is malformed is left to the readers. */

import type { AxisKind } from './known.js';

type Data = Readonly<Record<string, unknown>>;

// They named one of these methods in place of the axes of batched and of unbatched arguments.
const METHODS: ReadonlyMap<unknown, readonly [AxisKind, AxisKind]> = new Map([
  ['sequential', ['looped', 'unbatched']],
  ['sequential_unrolled', ['looped', 'unbatched']],
  ['expand_dims', ['batched', 'size1']],
  ['broadcast_all', ['batched', 'tiled']],
  ['legacy_vectorized', ['batched', 'unbatched']]
]);

/** The facts of a site, which had no consequence, no names of arguments, and no axes. */
export function siteFacts(value: unknown): unknown {
  if (!isObject(value)) {
    return value;
  }
  const failed = items(value['errors']).length > 0;
  const { shapes } = value;
  return {
    consequence: failed ? 'raised' : value['status'],
    ...value,
    shapes: Array.isArray(shapes) ? shapes.map(variant) : shapes
  };
}

function variant(value: unknown): unknown {
  if (!isObject(value)) {
    return value;
  }
  const mask = items(items(value['mask'])[0]);
  const levels = items(value['levels']).map(items);
  const axes = levels.map(([, method, flags], place) => {
    const [batched, unbatched] = METHODS.get(method) ?? ['in_place', 'unbatched'];
    const of = (flag: unknown): AxisKind => (flag ? batched : unbatched);
    const own = 'mask' in value ? { mask: of(mask[place]) } : {};
    return { operands: items(flags).map(of), results: batched, ...own };
  });
  return { operand_names: [], result_names: [], axes, ...value };
}

/** The measurements of sites, which were lists: their other names, and what they are if absent. */
const LISTS: readonly (readonly [name: string, old: string, absent: unknown])[] = [
  ['host_ns', 'host_ns', 0],
  ['variants_ns', 'variants_ns', []],
  ['cell_id', 'cells', null],
  ['cell_line', 'lines', 0],
  ['around', 'around', []],
  ['stack', 'stack', []],
  ['sample_rows', 'sample_rows', []]
];

/** The metadata of an output with a list of sites, of which there are `count`. */
export function measured(value: unknown, count: number): unknown {
  if (!isObject(value) || 'sites' in value || !LISTS.some(([, old]) => isSaved(value[old]))) {
    return value;
  }
  const sites = Array.from({ length: count }, (_, place) => {
    const parts = LISTS.map(([name, old, absent]) => [name, entry(value[old], place, absent)]);
    return Object.fromEntries(parts) as unknown;
  });
  return { ...value, sites };
}

function entry(list: unknown, place: number, absent: unknown): unknown {
  return isSaved(list) ? (Array.isArray(list) ? (list[place] as unknown) : list) : absent;
}

/** Whether a list has entries, or is no list, which a reader refuses. */
function isSaved(list: unknown): boolean {
  return list !== undefined && !(Array.isArray(list) && list.length === 0);
}

function isObject(value: unknown): value is Data {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function items(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
