/** The one-line summary, and the time in host functions, which the facts do not have. */

import { dotted, h } from '../dom/elements.js';
import { wallClause } from '../profile/words.js';
import { hostTime, timesKnown } from './words.js';
import type { Facts, Measured, Part, Tone } from '../data/schema.js';
import { callWords, counted, placeOf, siteTone, timeWords } from '../data/words.js';

/**
 * `✕ boom raised ValueError: no luck · ⚠ model never called (unused) · 5 more fine · 36 µs`.
 *
 * Args:
 *   canRerun: whether a click can record JAX's own callbacks that were not recorded.
 */
export function summaryLine(facts: Facts, measured: Measured, canRerun = false): HTMLElement {
  const found: HTMLElement[] = [];
  const told = measured.headline.length ? measured.headline : facts.headline;
  const parts = told.length ? told : totals(facts, measured);
  for (const [tone, text] of parts) {
    const part = h('span', { class: `jaxcb-summary-part jaxcb-tone-${tone}` }, ...dotted(text));
    const site = named(facts, tone, text);
    if (site >= 0) {
      const about = facts.sites[site]!;
      part.replaceChildren(...dotted(text.replace(about.where, placeOf(about))));
      part.dataset['site'] = String(site);
    }
    found.push(part);
  }
  if (canRerun && facts.not_observed && !measured.profile) {
    found.at(-1)!.dataset['jax'] = '';
    found.at(-1)!.title = 'run the cell again below %%jax_record --jax';
  }
  const [time, wall] = [timeWord(facts, measured), wallTime(facts, measured)];
  if (time) {
    const pieces = time.split(', ').flatMap((piece, nth) => [nth ? ', ' : '', h('span', {}, piece)]);
    found.push(h('span', { class: 'jaxcb-summary-part jaxcb-summary-time' }, ...pieces));
  }
  if (wall) {
    found.push(h('span', { class: 'jaxcb-summary-part' }, wall));
  }
  return h('span', { class: 'jaxcb-summary' }, ...dotted(found));
}

/** The site with the problem that a part of the headline describes; -1: none. */
function named({ sites }: Facts, tone: Tone, text: string): number {
  const having = [...sites.keys()].filter(place => {
    const site = sites[place]!;
    return siteTone(site) !== 'kept' && siteTone(site) === tone && text.includes(site.function);
  });
  return having.find(place => text.includes(sites[place]!.where)) ?? having[0] ?? -1;
}

/** The summary of a recording that was saved without one; none of a profile without sites. */
function totals({ sites }: Facts, { profile }: Measured): Part[] {
  if (!sites.length && profile) {
    return [];
  }
  const calls = sites.reduce((sum, site) => sum + site.calls, 0);
  const words = `${callWords(calls)} of ${counted(sites.length, 'call site')}`;
  return [['kept', sites.length ? words : 'no callbacks']];
}

/** Where the wall time went: in full if there are no sites, otherwise the longest kind. */
function wallTime({ sites }: Facts, { profile }: Measured): string {
  return profile ? (sites.length ? wallClause(profile) : profile.headline) : '';
}

/** `5.3 ms: host functions 36 µs, rest 5.26 ms`; empty if it is unknown. */
function timeWord(facts: Facts, { time }: Measured): string {
  const known = timesKnown(facts) && facts.sites.some(site => site.calls);
  return time || (known ? timeWords(hostTime(facts)) : '');
}
