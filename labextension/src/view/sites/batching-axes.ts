/** Which axis of each array, as the host sees it, is from which vmap. */

import phrases from '../data/phrases.json';
import type { Aval, AxisKind, Level, Mask, Stopped, Variant } from '../data/schema.js';
import {
  callShapes,
  callWords,
  counted,
  isOfHost,
  numberWords,
  product,
  say,
  someOf,
  splitLevels
} from '../data/words.js';

/** A kind whose place is known. */
export type DrawnKind = Exclude<AxisKind, 'in_place'>;

export interface BatchAxis {
  readonly kind: DrawnKind;
  readonly size: number;
}

/** An operand or a result, with its axis for each vmap (outermost first). */
export interface Batched {
  readonly name: string;
  readonly dtype: string; // empty: the host function does not get it
  readonly own: readonly number[]; // without any vmap
  readonly axes: readonly BatchAxis[];
  readonly host: string; // the shape in one host call
}

/** The operands and results; null if the data is inconsistent. */
export function batchedOf(variant: Variant): readonly Batched[] | null {
  const { operands, results, operand_names, result_names, levels, axes } = variant;
  if (axes.some(one => one.operands.length !== operands.length)) {
    return null;
  }
  const [given, returned] = callShapes(variant);
  const operandNames = named(phrases.argument, operands, operand_names);
  const resultNames = named(phrases.result, results, result_names);
  const found = [
    ...operands.map((aval, place) =>
      batch(operandNames[place]!, aval, given[place]!, levels, axes.map(one => one.operands[place]!))
    ),
    ...(variant.mask ? [maskRow(variant)] : []),
    ...results.map((aval, place) =>
      batch(resultNames[place]!, aval, returned[place]!, levels, axes.map(one => one.results))
    )
  ];
  const fitting = found.filter(one => one !== null);
  return fitting.length === found.length ? fitting : null;
}

/** The names of `avals`; numbers them if there are no names. */
export function named(
  word: string,
  avals: readonly Aval[],
  names: readonly string[]
): readonly string[] {
  if (names.length === avals.length) {
    return names;
  }
  return avals.map((_, place) => (avals.length === 1 ? word : `${word} ${place + 1}`));
}

/** The row of the mask, which the host function does not get. */
function maskRow({ levels, axes }: Variant): Batched | null {
  const found = levels.flatMap(([size], place) => {
    const kind = axes[place]!.mask ?? 'in_place';
    return kind === 'in_place' ? [] : [axisOf(kind, size)];
  });
  return found.length === levels.length
    ? { name: phrases.mask, dtype: '', own: [], axes: found.reverse(), host: phrases.not_passed }
    : null;
}

function axisOf(kind: DrawnKind, size: number): BatchAxis {
  return { kind, size: kind === 'size1' ? 1 : size };
}

function batch(
  name: string,
  [shape, dtype]: Aval,
  host: string,
  levels: readonly Level[],
  kinds: readonly AxisKind[]
): Batched | null {
  const axes: BatchAxis[] = [];
  let seen = 0; // axes of the host operand so far
  for (const [place, [size]] of [...levels.entries()].reverse()) {
    const kind = kinds[place]!;
    if (kind === 'in_place') {
      return null;
    }
    axes.push(axisOf(kind, size));
    if (isOfHost(kind)) {
      if (shape[seen] !== axes.at(-1)?.size) {
        return null;
      }
      seen += 1;
    }
  }
  return { name, dtype, own: shape.slice(seen), axes, host };
}

/** `1 call for 12 elements (4 × 3)`, `24 calls, 12 (4 × 3) each time, one for each element`. */
export function elementWords(variant: Variant): string {
  const { levels, calls, mask, stopped } = variant;
  if (mask) {
    return maskedWords(calls, mask);
  }
  const [looped, together] = splitLevels(variant);
  const atOnce = product(looped); // calls each time the program gets there
  const elements = `${counted(product(together), 'element')}${factors(together)}`;
  if (calls === 0 && product(levels) === 0) {
    return phrases.empty_batch;
  }
  if (atOnce === 1 && calls <= 1) {
    const words = say(phrases.one_call, { elements });
    return calls ? words : say(phrases.each_time, { words });
  }
  const partly = stopped !== undefined && calls < atOnce;
  const made = partly
    ? `${someOf(calls, atOnce)}${factors(looped)}`
    : callsMade(calls, atOnce, factors(looped));
  if (together.length || atOnce === 1) {
    return stoppedWords(say(phrases.each_for, { calls: made, elements }), stopped);
  }
  return stoppedWords(partly ? made : say(phrases.one_for_each, { calls: made }), stopped);
}

/** Adds where the calls stopped, if they did. */
function stoppedWords(calls: string, stopped: Stopped | undefined): string {
  if (!stopped) {
    return calls;
  }
  const [first, times] = stopped;
  const element = numberWords(first);
  const where =
    times === 1
      ? say(phrases.stopped, { element })
      : say(phrases.stopped_often, { count: numberWords(times), element });
  return `${calls}; ${where}`;
}

/** `4 calls for 4 of 12 elements`. */
function maskedWords(calls: number, [, needed, elements]: Mask): string {
  return elements
    ? say(phrases.masked, {
        calls: callWords(calls),
        needed: numberWords(needed),
        elements: counted(elements, 'element')
      })
    : phrases.masked_ahead;
}

function callsMade(calls: number, atOnce: number, factors: string): string {
  if (calls === 0) {
    return say(phrases.each_time, { words: `${callWords(atOnce)}${factors}` });
  }
  if (calls === atOnce || atOnce === 1) {
    return `${callWords(calls)}${factors}`;
  }
  const some = `${numberWords(atOnce)}${factors}`;
  return say(phrases.some_each_time, { calls: callWords(calls), some });
}

function factors(levels: readonly Level[]): string {
  const sizes = levels.map(([size]) => numberWords(size));
  return sizes.length > 1 ? ` (${sizes.join(' × ')})` : '';
}

/** `expand_dims`: the methods of the vmaps, outermost first, each once. */
export function methodWords(levels: readonly Level[]): string {
  return [...new Set([...levels].reverse().map(([, method]) => method))].join(', ');
}

/** `each call receives`: the head of the shapes that the host function sees. */
export function receives(variant: Variant): string {
  return product(splitLevels(variant)[0]) === 1 ? phrases.one_receives : phrases.each_receives;
}

/** The whole diagram as text, for screen readers. */
export function diagramWords(variant: Variant, rows: readonly Batched[]): string {
  const { operands, mask } = variant;
  const split = operands.length + (mask ? 1 : 0);
  const given = rows.slice(0, split).map(row => rowWords(row, receives(variant)));
  const returned = rows.slice(split).map(row => rowWords(row, phrases.must_return));
  return [elementWords(variant), ...given, ...returned].join('. ');
}

function rowWords({ name, axes, host, dtype }: Batched, verb: string): string {
  const kinds = axes.map(({ kind, size }) => {
    const sized = kind !== 'size1' && kind !== 'unbatched';
    return `${sized ? `${numberWords(size)} ` : ''}${phrases.axes[kind]}`;
  });
  return `${name}: ${kinds.join(', ')}; ${verb} ${[host, dtype].filter(Boolean).join(' ')}`;
}
