/** The one-line summary, and the time in host functions, which the facts do not have. */

import { h } from '../dom.js';
import { timesKnown } from './words.js';
import type { Facts, Measured, Part } from '../data/schema.js';
import { callWords, counted, timeWords } from '../data/words.js';

/** `✕ boom raised ValueError: no luck · ⚠ model never called (unused) · 5 more fine · 36 µs`. */
export function summaryLine(facts: Facts, measured: Measured): HTMLElement {
  const line = h('span', { class: 'jaxcb-summary' });
  const parts = facts.headline.length ? facts.headline : [totals(facts)];
  for (const [tone, text] of parts) {
    const part = h('span', { class: `jaxcb-summary-part jaxcb-tone-${tone}` }, text);
    line.append(...(line.childNodes.length ? [' · '] : []), part);
  }
  const time = timeWord(facts, measured);
  if (time) {
    line.append(' · ', h('span', { class: 'jaxcb-summary-part' }, time));
  }
  return line;
}

/** The summary of a recording that was saved without one. */
function totals({ sites }: Facts): Part {
  const calls = sites.reduce((sum, site) => sum + site.calls, 0);
  const words = `${callWords(calls)} of ${counted(sites.length, 'call site')}`;
  return ['kept', sites.length ? words : 'no callbacks'];
}

/** `36 µs`, `403 ms summed over 2 threads`; empty if it is unknown or nothing was called. */
function timeWord({ sites }: Facts, measured: Measured): string {
  if (!timesKnown(measured) || !sites.some(site => site.calls)) {
    return '';
  }
  const words = timeWords(measured.host_ns.reduce((sum, ns) => sum + ns, 0));
  const threads = measured.threads.length;
  return threads > 1 ? `${words} summed over ${threads} threads` : words;
}
