/** Outputs that earlier versions saved, in today's form; what is malformed is left to the readers. */

import type { AxisKind } from './known.js';
import { unmeasured, type Site, type SiteMeasured } from './site.js';

type Data = Readonly<Record<string, unknown>>;

// They named one of these methods in place of the axes of batched and of unbatched arguments.
const METHODS: ReadonlyMap<unknown, readonly [AxisKind, AxisKind]> = new Map([
  ['sequential', ['looped', 'unbatched']],
  ['sequential_unrolled', ['looped', 'unbatched']],
  ['expand_dims', ['batched', 'size1']],
  ['broadcast_all', ['batched', 'tiled']],
  ['legacy_vectorized', ['batched', 'unbatched']]
]);

/** The facts of a site, which had no consequence and no axes. */
export function siteFacts(value: unknown): unknown {
  if (!isObject(value)) {
    return value;
  }
  const failed = items(value['errors']).length > 0;
  const { shapes, status = 'kept' } = value;
  return {
    consequence: failed ? 'raised' : status,
    ...value,
    ...(Array.isArray(shapes) ? { shapes: shapes.map(variant) } : {})
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
  return { axes, ...value };
}

/** The figures of a site that was saved without: how calls are made was the first word of a note. */
export function figures({ notes }: Pick<Site, 'notes'>, own?: SiteMeasured): Pick<Site, 'figures'> {
  const made = notes.flatMap(note => /^(\w+)(?: by \w+)?: /.exec(note)?.[1] ?? []);
  return { figures: own?.figures.length ? own.figures : made.map(words => [words, true]) };
}

const LISTS: Readonly<Record<string, string>> = { cell_id: 'cells', cell_line: 'lines' };

/**
 * The metadata of an output whose sites have these lines, with a list of its sites.
 *
 * It was one list for each key of a site, of which some had other names, and some did not exist.
 */
export function measured(value: unknown, lines: readonly number[]): unknown {
  if (!isObject(value)) {
    return value;
  }
  const { sites } = value;
  if (Array.isArray(sites)) {
    const complete = (site: unknown, place: number): unknown =>
      isObject(site) ? { cell_line: lines[place], ...site } : site;
    return { ...value, sites: sites.slice(0, lines.length).map(complete) };
  }
  const names = Object.keys(unmeasured(0));
  const lists = names.map(name => [name, value[LISTS[name] ?? name]] as const);
  const known = lists.filter(([, list]) => isSaved(list));
  if (sites !== undefined || known.length === 0) {
    return value;
  }
  const entries = (place: number): object =>
    Object.fromEntries(known.map(([name, list]) => [name, Array.isArray(list) ? list[place] : list]));
  return { ...value, sites: lines.map((line, place) => ({ cell_line: line, ...entries(place) })) };
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
