/** Derives what each vmap did to each axis from the shapes that the host sees. */

import phrases from '../data/phrases.json';
import { LOOPED_METHODS, type Aval, type Level, type Variant } from '../data/schema.js';
import { levelWords, say, shapeWords } from '../data/words.js';

/**
 * How one vmap treats an operand: `batched`, `tiled` and `size1` are axes of the host operand,
 * `looped` is an axis that the host loops over, `unbatched` adds no axis.
 */
export type AxisKind = 'batched' | 'tiled' | 'size1' | 'looped' | 'unbatched';

export interface BatchAxis {
  readonly kind: AxisKind;
  readonly size: number;
}

/** An operand or a result, with its axis for each vmap (outermost first). */
export interface Batched {
  readonly name: string;
  readonly dtype: string;
  readonly own: readonly number[]; // without any vmap
  readonly axes: readonly BatchAxis[];
  readonly host: readonly number[];
}

const IN_WORDS: Readonly<Record<AxisKind, string>> = {
  batched: 'batched',
  tiled: 'unbatched, tiled',
  size1: 'unbatched, size-1 axis',
  looped: 'batched, looped over',
  unbatched: 'unbatched, no axis'
};

/** The operands and results; null if the data is inconsistent. */
export function batchedOf(variant: Variant): readonly Batched[] | null {
  const { operands, results, levels } = variant;
  if (levels.some(([, , flags]) => flags.length !== operands.length)) {
    return null;
  }
  const found = [
    ...operands.map((aval, place) =>
      batch(numbered('operand', operands, place), aval, levels, flags => flags[place] ?? false)
    ),
    ...results.map((aval, place) =>
      batch(numbered('result', results, place), aval, levels, () => true)
    )
  ];
  const fitting = found.filter(one => one !== null);
  return fitting.length === found.length ? fitting : null;
}

function numbered(word: string, avals: readonly Aval[], place: number): string {
  return avals.length === 1 ? word : `${word} ${place + 1}`;
}

function batch(
  name: string,
  [host, dtype]: Aval,
  levels: readonly Level[],
  isBatched: (flags: readonly boolean[]) => boolean
): Batched | null {
  const axes: BatchAxis[] = [];
  let seen = 0; // axes of the host operand so far
  for (const [size, method, flags] of [...levels].reverse()) {
    const kind = kindOf(method, isBatched(flags));
    if (kind === null) {
      return null;
    }
    axes.push({ kind, size: kind === 'size1' ? 1 : size });
    if (kind !== 'looped' && kind !== 'unbatched') {
      if (host[seen] !== axes.at(-1)?.size) {
        return null;
      }
      seen += 1;
    }
  }
  return { name, dtype, own: host.slice(seen), axes, host };
}

function kindOf(method: string, isBatched: boolean): AxisKind | null {
  if (LOOPED_METHODS.includes(method)) {
    return isBatched ? 'looped' : 'unbatched';
  }
  switch (method) {
    case 'expand_dims':
      return isBatched ? 'batched' : 'size1';
    case 'broadcast_all':
      return isBatched ? 'batched' : 'tiled';
    case 'legacy_vectorized':
      return isBatched ? 'batched' : 'unbatched';
    default:
      return null;
  }
}

/** `4 × 3 elements in one call`, `4 elements × one call`. */
export function elementWords(levels: readonly Level[]): string {
  const outermostFirst = [...levels].reverse();
  const isLooped = ([, method]: Level): boolean => LOOPED_METHODS.includes(method);
  const looped = sizesOf(outermostFirst.filter(isLooped));
  const together = sizesOf(outermostFirst.filter(level => !isLooped(level)));
  if (!looped) {
    return `${together} in one call`;
  }
  return `${looped} × one call${together ? ` with ${together}` : ''}`;
}

function sizesOf(levels: readonly Level[]): string {
  const sizes = levels.map(([size]) => size.toLocaleString('en-US'));
  return levels.length ? `${sizes.join(' × ')} element${sizes.join() === '1' ? '' : 's'}` : '';
}

/** The whole diagram as text, for screen readers. */
export function diagramWords(variant: Variant, rows: readonly Batched[]): string {
  const operands = rows.slice(0, variant.operands.length).map(row => rowWords(row, 'sees'));
  const results = rows.slice(variant.operands.length).map(row => rowWords(row, 'returns'));
  return [levelWords(variant.levels), ...operands, ...results, elementWords(variant.levels)].join('. ');
}

function rowWords({ name, axes, host }: Batched, verb: string): string {
  const kinds = axes.map(({ kind, size }) =>
    kind === 'size1' || kind === 'unbatched'
      ? IN_WORDS[kind]
      : `${say(phrases.vmap, { size })} ${IN_WORDS[kind]}`
  );
  return `${name}: ${kinds.join(', ')}; the host ${verb} ${shapeWords(host)}`;
}
