/** The words for shapes, counts and times, the same as `report/_words.py` uses. */

import type { Aval, Fate, Level, Site, Way } from './schema.js';

/** `1 call`, `12,000 calls`. */
export function callWords(count: number): string {
  return `${count.toLocaleString('en-US')} call${count === 1 ? '' : 's'}`;
}

/** `41 µs`: nanoseconds in the unit that leaves at most three digits. */
export function timeWords(ns: number): string {
  const units: [string, number][] = [
    ['ns', 1],
    ['µs', 1e3],
    ['ms', 1e6]
  ];
  for (const [unit, scale] of units) {
    if (ns < 999.5 * scale) {
      return `${threeDigits(ns / scale)} ${unit}`;
    }
  }
  return `${threeDigits(ns / 1e9)} s`;
}

/** `400 B`, `4.1 kB`. */
export function byteWords(count: number): string {
  const units: [string, number][] = [
    ['B', 1],
    ['kB', 1e3],
    ['MB', 1e6]
  ];
  for (const [unit, scale] of units) {
    if (count < 999.5 * scale) {
      return `${threeDigits(count / scale)} ${unit}`;
    }
  }
  return `${threeDigits(count / 1e9)} GB`;
}

function threeDigits(value: number): string {
  return value >= 999.5 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** `(3,)`, `()`: a shape as Python writes it. */
export function shapeWords(shape: readonly number[]): string {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`;
}

/** `(4,), (1,) → (4,)`: what one host call sees, and answers. */
export function wayShapes(way: Way): string {
  return `${avalWords(way.operands)} → ${avalWords(way.results)}`;
}

function avalWords(avals: readonly Aval[]): string {
  return avals.map(([shape]) => shapeWords(shape)).join(', ') || 'nothing';
}

const NOT_MAPPED: Readonly<Record<string, string>> = {
  expand_dims: 'size 1',
  broadcast_all: 'broadcast'
};

/** What a vmap makes of an operand that it does not map over. */
export function notMapped(method: string): string {
  return NOT_MAPPED[method] ?? 'shared';
}

/** `vmap 4 × vmap 3 (mapped, shared), sequential`: outermost first; empty without vmap. */
export function levelWords(levels: readonly Level[]): string {
  const outermostFirst = [...levels].reverse();
  const method = outermostFirst[0]?.[1];
  if (method === undefined) {
    return '';
  }
  const sizes = outermostFirst.map(([size, name, batched]) => {
    const kinds = batched.map(on => (on ? 'mapped' : notMapped(name)));
    return `vmap ${size}${batched.every(Boolean) ? '' : ` (${kinds.join(', ')})`}`;
  });
  return `${sizes.join(' × ')}, ${method}`;
}

const SIGNS: Readonly<Record<Fate, string>> = {
  live: '●',
  uncalled: '○',
  untaken: '○',
  unused: '✕',
  folded: '✕',
  merged: '◐',
  hoisted: '◐',
  unknown: '?'
};

/** The sign of a fate, which tells it without its colour. */
export function fateSign(fate: Fate): string {
  return SIGNS[fate];
}

/** Why a site is not simply live, and what to do about it; empty if it is. */
export function siteNote(site: Site): string {
  if (!site.reason) {
    return '';
  }
  const text = `${site.reason}; ${site.remedy}`;
  return site.elided ? `${site.elided} elided: ${text}` : text;
}
