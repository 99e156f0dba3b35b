/** The words for a callback and its sites, the same in badges, their tooltips and the panel. */

import type { Fate } from '../view/data/schema.js';
import { callWords, counted, fateSign, timeWords } from '../view/data/words.js';
import type { Callback, CallSite } from './kernel/snapshot.js';

/** How something stands, for its colour; the sign and the words tell it too. */
export type Tone = 'live' | 'elided' | 'error' | 'quiet';

const TONES: Readonly<Record<Fate, Tone>> = {
  live: 'live',
  uncalled: 'quiet',
  untaken: 'quiet',
  unused: 'elided',
  folded: 'elided',
  merged: 'elided',
  hoisted: 'elided',
  unknown: 'quiet'
};

/** The tone of a site: that of its errors before that of its fate. */
export function siteTone(site: CallSite): Tone {
  return site.errors.length > 0 ? 'error' : TONES[site.fate];
}

/** The sign of a site, which goes with its tone. */
export function siteSign(site: CallSite): string {
  return site.errors.length > 0 ? '✕' : fateSign(site.fate);
}

/** `5 calls · () → (5,) · 41 µs`, without the parts that say nothing. */
export function siteFigures(site: CallSite): string {
  const time = site.calls > 0 ? timeWords(site.host_ns) : '';
  return joined([callWords(site.calls), site.shapes, time]);
}

/** What stands at the end of the site's line, after its sign. */
export function siteBrief(site: CallSite): string {
  if (site.errors.length > 0) {
    const more = site.errors.length > 1 ? ` (+${site.errors.length - 1})` : '';
    return `${site.errors[0]}${more}`;
  }
  if (site.fate === 'live') {
    return joined([siteFigures(site), site.elided > 0 ? `${count(site.elided)} elided` : '']);
  }
  const why = firstClause(site.reason);
  return why ? `${fateWord(site.fate)}: ${why}` : fateWord(site.fate);
}

/** Everything on a site that its badge leaves out, a line each. */
export function siteDetails(site: CallSite): string[] {
  return [
    joined([site.flavor, fateWord(site.fate), siteFigures(site)]),
    ...sentences(site.reason, site.remedy),
    ...site.errors
  ];
}

/** Why a site is not simply live, and what to do about it: a sentence each. */
export function sentences(...texts: string[]): string[] {
  return texts.filter(Boolean).map(text => {
    const first = text.charAt(0).toUpperCase() + text.slice(1);
    return /[.!?]$/.test(first) ? first : `${first}.`;
  });
}

/** `elided` where a compiled program does without the call altogether; else the fate itself. */
export function fateWord(fate: Fate): string {
  return fate === 'unused' || fate === 'folded' ? 'elided' : fate;
}

/** What stands at the end of the line that registers a callback. */
export function callbackBrief(callback: Callback): string {
  return joined([
    `${callback.flavor} callback`,
    callWords(callback.calls),
    counted(callback.sites.length, 'site'),
    callback.errors > 0 ? counted(callback.errors, 'error') : ''
  ]);
}

/** The parts that say something, with dots between them. */
export function joined(parts: readonly string[]): string {
  return parts.filter(Boolean).join(' · ');
}

function count(of: number): string {
  return of.toLocaleString('en-US');
}

function firstClause(reason: string): string {
  return /^[^,;]*/.exec(reason)![0];
}
