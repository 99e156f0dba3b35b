/** Texts about callbacks and call sites, shared by badges, tooltips and the panel. */

import phrases from '../view/data/phrases.json';
import { TONES, type Consequence, type Site, type Tone, type Variant } from '../view/data/schema.js';
import { proposed, workWords } from '../view/sites/words.js';
import {
  callWords,
  counted,
  elidedWords,
  joined,
  numberWords,
  say,
  siteTone,
  siteWord
} from '../view/data/words.js';
import type { Callback } from './kernel/snapshot.js';

const MOST_VARIANTS = 100; // as in _sites.py
const MOST_ROWS = 8; // operands and results of a diagram in a tooltip
const MOST_LEVELS = 4;
const WITH_FIGURES: readonly Consequence[] = ['kept', 'not_finite', 'dropped', 'running'];

/** The worst tone of some sites. */
export function worstTone(sites: readonly Site[]): Tone {
  const tones = new Set(sites.map(siteTone));
  return TONES.find(tone => tones.has(tone)) ?? 'quiet';
}

/** `5 calls · queued · 41 µs · () → (5,)`: where there is little room, shapes are cut. */
export function siteFigures(site: Site, { calls = callsOf(site), all = false } = {}): string {
  const more = site.figures.flatMap(([words, brief]) => (all || brief ? words : []));
  return joined([calls, ...site.hints, ...more, workWords(site), shapesOf(site)]);
}

/** `5 calls`, `9 of 20` if a mask chose 9 of 20 batch elements, `1 call for 9 of 20`. */
function callsOf({ calls, consequence, shapes }: Site): string {
  if (!calls && consequence === 'running') {
    return ''; // it says for how long
  }
  const needed = shapes.reduce((sum, shape) => sum + shape.needed, 0);
  const elements = shapes.reduce((sum, { batch }) => sum + batch, 0);
  if (!elements || shapes.some(({ batch }) => !batch)) {
    return callWords(calls);
  }
  const some = `${numberWords(needed)} of ${numberWords(elements)}`;
  return calls === needed ? some : `${callWords(calls)} for ${some}`;
}

/** `() → (5,)` or `3 shapes`; the kernel sends at most a hundred variants of a site. */
function shapesOf({ shapes }: Site): string {
  const all = new Set(shapes.map(variant => variant.shapes));
  const more = shapes.length !== MOST_VARIANTS ? '' : ' or more';
  return all.size > 1 ? `${numberWords(all.size)}${more} shapes` : ([...all][0] ?? '');
}

/** The variant to draw in a tooltip, which has room for one small diagram. */
export function drawnVariant({ shapes }: Site): Variant | null {
  const [only, ...others] = shapes;
  const diagram = others.length ? undefined : only?.diagram;
  const fits = diagram && diagram.rows.length <= MOST_ROWS && diagram.vmaps.length <= MOST_LEVELS;
  return fits ? only! : null;
}

/** The text of a badge at the end of the site's line, after its sign. */
export function siteBrief(site: Site): string {
  if (site.consequence === 'raised') {
    const more = site.errors.length > 1 ? ` (+${site.errors.length - 1})` : '';
    return `${site.errors[0]}${more}`;
  }
  const word = siteWord(site);
  if (WITH_FIGURES.includes(site.consequence)) {
    return joined([word, siteFigures(site, { calls: callsAfter(word, site) }), elidedWords(site)]);
  }
  const why = instead(site) || firstClause(site.reason);
  return why ? `${word}: ${why}` : word;
}

/** `1 call instead of 50`: of those that are hoisted or deduplicated; empty if it is not known. */
function instead({ calls, written }: Site): string {
  return calls && written !== null && calls < written
    ? say(phrases.instead_of, { calls: callWords(calls), written: numberWords(written) })
    : '';
}

/** `12 × vmap` of loops, `26 calls, 15 × vmap` of some calls; empty if the word counts the calls. */
function callsAfter(word: string, site: Site): string {
  const { looped } = site;
  const loop = looped && say(phrases.times_vmap, { count: numberWords(looped) });
  const calls = word.includes(callWords(site.calls)) ? '' : callsOf(site);
  return loop ? [looped < site.calls && calls, loop].filter(Boolean).join(', ') : calls;
}

/** The lines of the tooltip of a site's badge. */
export function siteDetails(site: Site): string[] {
  return [
    joined([
      site.flavor,
      siteWord(site),
      siteFigures(site, { calls: siteWord(site).includes(callWords(site.calls)) ? '' : callsOf(site), all: true })
    ]),
    ...sentences(site.reason, site.advice, ...proposed(site)),
    ...site.errors
  ];
}

/** Turns clauses, such as a reason and its advice, into sentences. */
export function sentences(...texts: string[]): string[] {
  return texts.filter(Boolean).map(text => {
    const first = text.charAt(0).toUpperCase() + text.slice(1);
    return /[.!?]$/.test(first) ? first : `${first}.`;
  });
}

/** The text of the badge on the line that registers a callback. */
export function callbackBrief(callback: Callback): string {
  return joined([
    `${callback.flavor} callback`,
    callWords(callback.calls),
    counted(callback.sites.length, 'site'),
    callback.errors > 0 ? counted(callback.errors, 'error') : ''
  ]);
}

function firstClause(reason: string): string {
  return /^[^,;]*/.exec(reason)![0];
}
