/** Formats shapes, counts and times with the phrases of `jupyter_jaxcb/report`. */

import phrases from './phrases.json';
import type { Aval, Axes, AxisKind, Consequence, Level, Site, Tone, Variant } from './schema.js';

/** Fills in the names in braces of a phrase. */
export function say(phrase: string, words: Readonly<Record<string, string | number>>): string {
  return phrase.replace(/\{(\w+)\}/g, (_, name: string) => String(words[name]));
}

/** `line 3`, `[21] line 3` in another cell. */
export function placeOf({ numbered, where }: Site): string {
  return numbered || where;
}

/** Long text without its middle: of names of arguments and of places, the ends differ. */
export function middleCut(text: string, longest: number): string {
  const all = [...text];
  const end = Math.floor((longest - 1) / 2);
  return all.length <= longest
    ? text
    : `${all.slice(0, longest - 1 - end).join('')}…${all.slice(all.length - end).join('')}`;
}

/** Joins the non-empty parts with dots. */
export function joined(parts: readonly (string | false)[]): string {
  return parts.filter(Boolean).join(' · ');
}

/** `12,000`. */
export function numberWords(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 site`, `12,000 sites`. */
export function counted(count: number, noun: string): string {
  return `${numberWords(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** `1 call`, `12,000 calls`. */
export function callWords(count: number): string {
  return counted(count, 'call');
}

/** `2 elided`: calls that were not made; empty: none. */
export function elidedWords({ elided }: { readonly elided: number }): string {
  return elided > 0 ? `${numberWords(elided)} elided` : '';
}

/** `3 of 5 calls`. */
export function someOf(some: number, all: number): string {
  return say(phrases.some_of, { some: numberWords(some), calls: callWords(all) });
}

/** `41 µs`: nanoseconds in the unit that leaves at most three digits. */
export function timeWords(ns: number): string {
  return inUnits(ns, phrases.times as Unit[]);
}

/** `82 %`, `<1 %`: a share of 1. */
export function shareWords(share: number): string {
  return share > 0 && share < 0.01 ? '<1 %' : `${Math.round(100 * share)} %`;
}

/** `400 B`, `4.1 kB`. */
export function byteWords(count: number): string {
  return inUnits(count, phrases.bytes as Unit[]);
}

type Unit = [name: string, scale: number];

function inUnits(amount: number, units: readonly Unit[]): string {
  const [name, scale] = units.find(([, scale]) => amount < 999.5 * scale) ?? units.at(-1)!;
  return `${threeDigits(amount / scale)} ${name}`;
}

function threeDigits(value: number): string {
  return value >= 999.5 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** `(3,)`, `()`: a shape as Python writes it. */
export function shapeWords(shape: readonly number[]): string {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`;
}

/** `(4,), (1,) → (4,)`: the operands and results of one host call. */
export function variantShapes(variant: Variant): string {
  const [operands, results] = callShapes(variant).map(words => grouped(words).join(', '));
  return `${operands || phrases.nothing} → ${results || phrases.nothing}`;
}

/** Equal shapes in a row, from three on, as one: `30 × ()`. */
function grouped(shapes: readonly string[]): string[] {
  const runs: string[][] = [];
  for (const shape of shapes) {
    if (runs.at(-1)?.[0] === shape) {
      runs.at(-1)!.push(shape);
    } else {
      runs.push([shape]);
    }
  }
  return runs.flatMap(run => (run.length < 3 ? run : [`${run.length} × ${run[0]}`]));
}

/**
 * The shapes of the operands and of the results of one host call. If a mask selects elements that
 * share one call, these are on one axis: `(≤ 12, 5)`.
 */
export function callShapes(variant: Variant): [operands: string[], results: string[]] {
  const { operands, results, levels, axes, mask } = variant;
  if (!mask || !levels.length || axes.some(isLooped)) {
    return [operands.map(([shape]) => shapeWords(shape)), results.map(([shape]) => shapeWords(shape))];
  }
  const size = product(levels);
  return [
    operands.map((aval, place) =>
      gathered(aval, axes.map(one => one.operands[place] ?? 'unbatched'), size)
    ),
    results.map(aval => gathered(aval, axes.map(one => one.results), size))
  ];
}

/** The shape of a call for at most `size` batch elements of a batch. */
function gathered([shape]: Aval, kinds: readonly AxisKind[], size: number): string {
  const axes = kinds.filter(isOfHost).length;
  if (!axes) {
    return shapeWords(shape);
  }
  const one = kinds.every(kind => kind === 'size1');
  const first = one ? '1' : say(phrases.at_most, { size });
  const sizes = [first, ...shape.slice(axes).map(String)];
  return `(${sizes.join(', ')}${sizes.length === 1 ? ',' : ''})`;
}

/** Whether the host function gets such an axis, in front of the axes of inner vmaps. */
export function isOfHost(kind: AxisKind): boolean {
  return kind === 'batched' || kind === 'tiled' || kind === 'size1';
}

/** Whether the host loops over the batch elements of a vmap. */
function isLooped({ results }: Axes): boolean {
  return results === 'looped';
}

/** The vmaps that the host loops over, and the others; each outermost first. */
export function splitLevels({ levels, axes }: Variant): [looped: Level[], together: Level[]] {
  const looped = levels.filter((_, place) => isLooped(axes[place]!)).reverse();
  return [looped, levels.filter(level => !looped.includes(level)).reverse()];
}

/** The number of batch elements of nested vmaps. */
export function product(levels: readonly Level[]): number {
  return levels.reduce((count, [size]) => count * size, 1);
}

/** `vmap 4 × vmap 3 (batched, unbatched), sequential`: outermost first; empty without vmap. */
export function levelWords({ levels, axes }: Variant): string {
  const sizes = levels.map(([size, , batched], place) => {
    const kinds = axes[place]!.operands.map(kind => phrases.arguments[kind]);
    const all = batched.every(Boolean);
    return `${say(phrases.vmap, { size })}${all ? '' : ` (${kinds.join(', ')})`}`;
  });
  return sizes.length ? `${sizes.reverse().join(' × ')}, ${levels.at(-1)![1]}` : '';
}

/** `unused`, `NaN in 6 of 10 calls, first: call 5`; empty for kept calls. */
export function siteWord({ consequence, word }: Site): string {
  return word || statusWord(consequence);
}

/** The same after its sign. */
export function siteStatus(site: Site): string {
  return `${phrases.signs[site.consequence]} ${siteWord(site)}`.trimEnd();
}

/** `⚠ unused`, `✕ raised`; the sign alone for kept calls, whose number is shown. */
export function statusWords(consequence: Consequence): string {
  return `${phrases.signs[consequence]} ${statusWord(consequence)}`.trimEnd();
}

/** `✕ no luck`: what went wrong. */
export function failedWords(words: string): string {
  return `${phrases.signs.raised} ${words}`;
}

/** `⚠ still running`. */
export function warningWords(words: string): string {
  return `${phrases.signs.not_finite} ${words}`;
}

/** `not reached`, ...; empty for kept calls. */
export function statusWord(consequence: Consequence): string {
  return phrases.words[consequence];
}

/** The tone of a consequence: the same in the headline, rows, badges and the panel. */
export function toneOf(consequence: Consequence): Tone {
  return phrases.tones[consequence] as Tone;
}
