/** Formats shapes, counts and times with the phrases of `jupyter_jaxcb/report`. */

import phrases from './phrases.json';
import { LOOPED_METHODS, type Aval, type Consequence, type Level } from './schema.js';
import type { Tone, Variant } from './schema.js';

/** Fills in the names in braces of a phrase. */
export function say(phrase: string, words: Readonly<Record<string, string | number>>): string {
  return phrase.replace(/\{(\w+)\}/g, (_, name: string) => String(words[name]));
}

/** `1 site`, `12,000 sites`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}

/** `1 call`, `12,000 calls`. */
export function callWords(count: number): string {
  return counted(count, 'call');
}

/** `3 of 5 calls`. */
export function someOf(some: number, all: number): string {
  return say(phrases.some_of, { some: some.toLocaleString('en-US'), calls: callWords(all) });
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
  const [operands, results] = callShapes(variant).map(words => words.join(', '));
  return `${operands || phrases.nothing} → ${results || phrases.nothing}`;
}

/**
 * The shapes of the operands and of the results of one host call. If a mask selects elements that
 * share one call, these are on one axis: `(≤ 12, 5)`.
 */
export function callShapes(variant: Variant): [operands: string[], results: string[]] {
  const { operands, results, levels, mask } = variant;
  const method = levels[0]?.[1];
  if (!mask || method === undefined || levels.some(isLooped)) {
    return [operands.map(([shape]) => shapeWords(shape)), results.map(([shape]) => shapeWords(shape))];
  }
  const size = product(levels);
  return [
    operands.map((aval, place) =>
      gathered(aval, levels.map(([, , flags]) => flags[place] ?? false), method, size)
    ),
    results.map(aval => gathered(aval, levels.map(() => true), method, size))
  ];
}

/** The shape of a call for at most `size` batch elements of a batch. */
function gathered([shape]: Aval, batched: readonly boolean[], method: string, size: number): string {
  const maps = batched.filter(Boolean).length;
  const axes = method === 'legacy_vectorized' ? maps : batched.length;
  if (!axes) {
    return shapeWords(shape);
  }
  const one = method === 'expand_dims' && !maps;
  const first = one ? '1' : say(phrases.at_most, { size });
  const sizes = [first, ...shape.slice(axes).map(String)];
  return `(${sizes.join(', ')}${sizes.length === 1 ? ',' : ''})`;
}

/** Whether the host loops over the batch elements of a vmap. */
export function isLooped([, method]: Level): boolean {
  return LOOPED_METHODS.includes(method);
}

/** The number of batch elements of nested vmaps. */
export function product(levels: readonly Level[]): number {
  return levels.reduce((count, [size]) => count * size, 1);
}

const UNBATCHED_AXES: Readonly<Record<string, string>> = phrases.unbatched_axes;

/** How an unbatched operand reaches the host. */
export function unbatchedAxis(method: string): string {
  return UNBATCHED_AXES[method] ?? phrases.unbatched;
}

/** `vmap 4 × vmap 3 (batched, unbatched), sequential`: outermost first; empty without vmap. */
export function levelWords(levels: readonly Level[]): string {
  const outermostFirst = [...levels].reverse();
  const method = outermostFirst[0]?.[1];
  if (method === undefined) {
    return '';
  }
  const sizes = outermostFirst.map(([size, name, batched]) => {
    const kinds = batched.map(on => (on ? phrases.batched : unbatchedAxis(name)));
    const all = batched.every(Boolean);
    return `${say(phrases.vmap, { size })}${all ? '' : ` (${kinds.join(', ')})`}`;
  });
  return `${sizes.join(' × ')}, ${method}`;
}

/** `⚠ unused`, `✕ raised`; the sign alone for kept calls, whose number is shown. */
export function statusWords(consequence: Consequence): string {
  return `${phrases.signs[consequence]} ${statusWord(consequence)}`.trimEnd();
}

/** `not reached`, ...; empty for kept calls. */
export function statusWord(consequence: Consequence): string {
  return phrases.words[consequence];
}

/** The tone of a consequence: the same in the headline, rows, badges and the panel. */
export function toneOf(consequence: Consequence): Tone {
  return phrases.tones[consequence] as Tone;
}
