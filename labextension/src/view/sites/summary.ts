/** The one-line summary: each host function once, with its elided calls. */

import { h } from '../dom.js';
import { cut } from '../data/parse-fields.js';
import { errorWords, timesKnown } from './words.js';
import phrases from '../data/phrases.json';
import type { Facts, Status, Measured, Site } from '../data/schema.js';
import { callWords, counted, say, timeWords, variantShapes } from '../data/words.js';

const MOST_FUNCTIONS = 4;
const MOST_ERROR = 60; // characters

const WHY: Readonly<Partial<Record<Status, string>>> = {
  unused: 'result unused',
  optimized_away: 'removed by XLA',
  deduplicated: 'deduplicated',
  hoisted: 'moved out of the loop'
};

interface Word {
  readonly text: string;
  readonly class?: string;
}

/** `bessel · pure · 1 call · () → (5,) · 41 µs · ✕ 1 elided: result unused`. */
export function summaryLine(facts: Facts, measured: Measured): HTMLElement {
  const line = h('span', { class: 'jaxcb-summary' });
  const functions = grouped(facts.sites);
  for (const places of functions.slice(0, MOST_FUNCTIONS)) {
    line.append(...spaced(line), functionPart(facts, measured, places));
  }
  if (functions.length > MOST_FUNCTIONS) {
    line.append(...spaced(line), restPart(facts, functions.slice(MOST_FUNCTIONS)));
  }
  if (!functions.length) {
    line.append(h('span', { class: 'jaxcb-muted' }, 'no callbacks'));
  }
  return line;
}

/** Spaces between functions, for copied text and screen readers. */
function spaced(line: HTMLElement): string[] {
  return line.childNodes.length ? ['   '] : [];
}

/** Indices of the sites of each function, in order of the first site. */
function grouped(sites: readonly Site[]): number[][] {
  const found = new Map<string, number[]>();
  sites.forEach((site, place) => {
    const key = JSON.stringify([site.function, site.flavor]);
    const own = found.get(key);
    if (own) {
      own.push(place);
    } else {
      found.set(key, [place]);
    }
  });
  return [...found.values()];
}

function functionPart(facts: Facts, measured: Measured, places: readonly number[]): HTMLElement {
  const own = places.map(place => facts.sites[place]!);
  const first = own[0]!;
  const words: Word[] = [
    { text: first.function, class: 'jaxcb-summary-name' },
    { text: first.flavor },
    { text: countWords(own, facts.ahead) },
    ...shapeWord(own),
    ...timeWord(own, places, measured),
    ...elidedWord(own),
    ...errorWord(own)
  ];
  return partOf(words);
}

/** `and 2 more functions · ✕ 1 elided`: problems of the functions that are not listed. */
function restPart(facts: Facts, functions: readonly (readonly number[])[]): HTMLElement {
  const own = functions.flat().map(place => facts.sites[place]!);
  const text = `and ${counted(functions.length, 'more function')}`;
  return partOf([{ text, class: 'jaxcb-muted' }, ...elidedWord(own), ...errorWord(own)]);
}

function partOf(words: readonly Word[]): HTMLElement {
  const part = h('span', { class: 'jaxcb-summary-part' });
  words.forEach((word, place) => {
    part.append(place ? ' · ' : '', h('span', { class: word.class }, word.text));
  });
  return part;
}

function countWords(own: readonly Site[], ahead: boolean): string {
  if (!ahead) {
    return callWords(own.reduce((sum, site) => sum + site.calls, 0));
  }
  const expected = own.map(site => site.expected).filter(count => count !== null);
  return expected.length < own.length
    ? phrases.depends_on_data
    : say(phrases.a_run, { calls: callWords(expected.reduce((sum, count) => sum + count, 0)) });
}

function shapeWord(own: readonly Site[]): Word[] {
  const shapes = new Set(own.flatMap(site => site.shapes.map(variantShapes)));
  const [only] = shapes;
  if (only === undefined) {
    return [];
  }
  const text =
    shapes.size === 1 ? cut(only, MOST_ERROR) : say(phrases.shapes, { count: shapes.size });
  return [{ text }];
}

function timeWord(own: readonly Site[], places: readonly number[], measured: Measured): Word[] {
  if (!timesKnown(measured) || !own.some(site => site.calls)) {
    return [];
  }
  const ns = places.reduce((sum, place) => sum + (measured.host_ns[place] ?? 0), 0);
  return [{ text: timeWords(ns) }];
}

function elidedWord(own: readonly Site[]): Word[] {
  const elided = own.filter(site => site.elided);
  if (!elided.length) {
    return [];
  }
  const count = elided.reduce((sum, site) => sum + site.elided, 0);
  const why = new Set(elided.map(site => WHY[site.status]));
  const [only] = why;
  const because = why.size === 1 && only ? `: ${only}` : '';
  return [{ text: `${say(phrases.elided, { count })}${because}`, class: 'jaxcb-elided' }];
}

function errorWord(own: readonly Site[]): Word[] {
  const [first, ...more] = own.flatMap(site => site.errors);
  if (first === undefined) {
    return [];
  }
  const others = more.length ? ` and ${more.length} more` : '';
  return [{ text: `✕ ${errorWords(first, MOST_ERROR)}${others}`, class: 'jaxcb-bad' }];
}
