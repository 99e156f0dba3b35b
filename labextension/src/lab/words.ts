/** The words for a callback and its sites, the same in badges, their tooltips and the panel. */

import type { Status } from '../view/data/schema.js';
import { callWords, counted, statusSign, statusWord, timeWords } from '../view/data/words.js';
import type { Callback, CallSite } from './kernel/snapshot.js';

/** How something stands, for its colour; the sign and the words tell it too. */
export type Tone = 'kept' | 'elided' | 'error' | 'quiet';

const TONES: Readonly<Record<Status, Tone>> = {
  kept: 'kept',
  not_run: 'quiet',
  not_reached: 'quiet',
  unused: 'elided',
  optimized_away: 'elided',
  deduplicated: 'elided',
  hoisted: 'elided',
  unknown: 'quiet'
};

/** The tone of a site: that of its errors before that of its status. */
export function siteTone(site: CallSite): Tone {
  return site.errors.length > 0 ? 'error' : TONES[site.status];
}

/** The sign of a site, which goes with its tone. */
export function siteSign(site: CallSite): string {
  return site.errors.length > 0 ? '✕' : statusSign(site.status);
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
  if (site.status === 'kept') {
    return joined([siteFigures(site), site.elided > 0 ? `${count(site.elided)} elided` : '']);
  }
  const why = firstClause(site.reason);
  return why ? `${statusWord(site.status)}: ${why}` : statusWord(site.status);
}

/** Everything on a site that its badge leaves out, a line each. */
export function siteDetails(site: CallSite): string[] {
  return [
    joined([site.flavor, statusWord(site.status), siteFigures(site)]),
    ...sentences(site.reason, site.advice),
    ...site.errors
  ];
}

/** Why a site is not simply called, and what to do about it: a sentence each. */
export function sentences(...texts: string[]): string[] {
  return texts.filter(Boolean).map(text => {
    const first = text.charAt(0).toUpperCase() + text.slice(1);
    return /[.!?]$/.test(first) ? first : `${first}.`;
  });
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
