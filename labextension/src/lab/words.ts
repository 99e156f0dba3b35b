/** Texts about callbacks and call sites, shared by badges, tooltips and the panel. */

import phrases from '../view/data/phrases.json';
import { TONES, type Tone } from '../view/data/schema.js';
import { callWords, counted, statusWord, timeWords, toneOf } from '../view/data/words.js';
import type { Callback, CallSite } from './kernel/snapshot.js';

/** The worst tone of some sites. */
export function worstTone(sites: readonly CallSite[]): Tone {
  const tones = new Set(sites.map(site => toneOf(site.consequence)));
  return TONES.find(tone => tones.has(tone)) ?? 'quiet';
}

/** The sign of a site, matching its tone. */
export function siteSign(site: CallSite): string {
  return phrases.signs[site.consequence];
}

/** `5 calls · () → (5,) · 41 µs`, without empty parts. */
export function siteFigures(site: CallSite): string {
  const timed = site.calls > 0 && site.host_ns > 0; // a trace may be saved without times
  const time = timed ? timeWords(site.host_ns) : '';
  return joined([callWords(site.calls), site.shapes, time]);
}

/** The text of a badge at the end of the site's line, after its sign. */
export function siteBrief(site: CallSite): string {
  if (site.errors.length > 0) {
    const more = site.errors.length > 1 ? ` (+${site.errors.length - 1})` : '';
    return `${site.errors[0]}${more}`;
  }
  const word = statusWord(site.consequence);
  if (site.consequence === 'kept' || site.consequence === 'not_finite') {
    const elided = site.elided > 0 ? `${count(site.elided)} elided` : '';
    return joined([word, siteFigures(site), elided]);
  }
  const why = firstClause(site.reason);
  return why ? `${word}: ${why}` : word;
}

/** The lines of the tooltip of a site's badge. */
export function siteDetails(site: CallSite): string[] {
  return [
    joined([site.flavor, statusWord(site.consequence), siteFigures(site)]),
    ...sentences(site.reason, site.advice),
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

/** Joins the non-empty parts with dots. */
export function joined(parts: readonly string[]): string {
  return parts.filter(Boolean).join(' · ');
}

function count(of: number): string {
  return of.toLocaleString('en-US');
}

function firstClause(reason: string): string {
  return /^[^,;]*/.exec(reason)![0];
}
