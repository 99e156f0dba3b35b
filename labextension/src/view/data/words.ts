/** Formats counts and times with the phrases of `jupyter_jaxcb/report`. */

import phrases from './phrases.json';
import type { Consequence, Site, Tone } from './schema.js';

/** Fills in the names in braces of a phrase. */
export function say(phrase: string, words: Readonly<Record<string, string | number>>): string {
  return phrase.replace(/\{(\w+)\}/g, (_, name: string) => String(words[name]));
}

/** `line 3`, `[21] line 3` in another cell. */
export function placeOf({ numbered, where }: Pick<Site, 'where'> & { numbered?: string }): string {
  return numbered || where;
}

/** The same place in the cell that has the label `[21]` now; without label: beside its code. */
export function placeIn(label: string, where: string): string {
  const line = where.replace(/^\[\d+\] |^(line [\d:]+), another cell/, '$1');
  return label ? `${label} ${line}` : line;
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

/** `unused`, `NaN in 6 of 10 calls, first: call 5`; empty for kept calls. */
export function siteWord({ consequence, word }: Site): string {
  return word || statusWord(consequence);
}

/** The same after its sign. */
export function siteStatus(site: Site): string {
  return `${siteSign(site)} ${siteWord(site)}`.trimEnd();
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

/** The tone of a site: calls that are fine may cost more than one thinks. */
export function siteTone(site: Site): Tone {
  const tone = toneOf(site.consequence);
  if (tone !== 'kept') {
    return tone;
  }
  return site.cost ? 'warning' : site.hints.length || site.looped ? 'quiet' : tone;
}

/** The sign of a site, matching its tone. */
export function siteSign(site: Site): string {
  const sign = phrases.signs[site.consequence];
  return siteTone(site) === 'warning' && sign === phrases.signs.kept ? phrases.signs.not_finite : sign;
}

/** The tone of a consequence: the same in the headline, rows, badges and the panel. */
export function toneOf(consequence: Consequence): Tone {
  return phrases.tones[consequence] as Tone;
}
