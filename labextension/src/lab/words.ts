/** Texts about callbacks and call sites, shared by badges, tooltips and the panel. */

import type { Status } from '../view/data/schema.js';
import { callWords, counted, statusSign, statusWord, timeWords } from '../view/data/words.js';
import type { Callback, CallSite } from './kernel/snapshot.js';

/** The kind of state. It sets the color; sign and text express it too. */
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

/** The tone of a site; errors take precedence over its status. */
export function siteTone(site: CallSite): Tone {
  return site.errors.length > 0 ? 'error' : TONES[site.status];
}

/** The sign of a site, matching its tone. */
export function siteSign(site: CallSite): string {
  return site.errors.length > 0 ? '✕' : statusSign(site.status);
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
  if (site.status === 'kept') {
    return joined([siteFigures(site), site.elided > 0 ? `${count(site.elided)} elided` : '']);
  }
  const why = firstClause(site.reason);
  return why ? `${statusWord(site.status)}: ${why}` : statusWord(site.status);
}

/** The lines of the tooltip of a site's badge. */
export function siteDetails(site: CallSite): string[] {
  return [
    joined([site.flavor, statusWord(site.status), siteFigures(site)]),
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
