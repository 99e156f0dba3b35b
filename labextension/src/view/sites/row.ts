/** The row of one site: place, source line, status, calls and time. */

import { button, h, type Child } from '../dom/elements.js';
import { term } from '../dom/term.js';
import { siteColour } from '../colours.js';
import { hostTime, siteCalls } from './words.js';
import type { Facts, Proposal, Site } from '../data/schema.js';
import { elidedWords, placeOf, shareWords, siteStatus, siteTone, timeWords } from '../data/words.js';

/** A line of code to jump to. */
export interface Target {
  readonly cell: string | null; // the id of the cell that ran; null: unknown
  readonly line: number;
  readonly source: string; // the line, stripped; empty: unknown
  readonly elsewhere: boolean; // in another cell than the one that was recorded
}

/** Actions of a site; without an action its button is absent. */
export interface SiteActions {
  readonly reveal?: ((target: Target) => void) | undefined;
  /** Writes an option that advice proposes into the code. */
  readonly apply?: ((site: Site, proposal: Proposal) => Promise<boolean>) | undefined; // whether it did
  readonly filter?: ((site: number | null) => void) | undefined;
  /** Shows a call, by its row. */
  readonly select?: ((row: number) => void) | undefined;
}

/** The columns of a site. */
export function siteRow(
  facts: Facts,
  place: number,
  colour: number,
  actions: SiteActions,
  fold: HTMLElement,
  trend: HTMLElement | null
): HTMLElement {
  const site = facts.sites[place]!;
  const { filter } = actions;
  const tone = siteTone(site);
  const elided = elidedWords(site);
  return h(
    'div',
    { class: 'jaxcb-site-row' },
    fold,
    swatch(colour),
    whereOf(site, actions.reveal),
    h('code', { class: 'jaxcb-site-source', title: site.source }, site.source || site.function),
    h('span', { class: 'jaxcb-site-flavor' }, `${site.function} · ${site.flavor}${vmapsOf(site)}`),
    h('span', { class: `jaxcb-status jaxcb-tone-${tone}` }, siteStatus(site)),
    h(
      'span',
      { class: 'jaxcb-site-calls' },
      filter && site.calls
        ? callsLink(site, () => filter(place))
        : siteCalls(site, facts.ahead),
      elided && term('elided', elided, `jaxcb-tone-${tone === 'warning' ? tone : 'quiet'}`)
    ),
    h('span', { class: 'jaxcb-site-time' }, trend, ...timeOf(site, facts))
  );
}

function callsLink(site: Site, act: () => void): HTMLElement {
  const calls = siteCalls(site, false);
  const label = `show ${calls}: ${site.function}, ${placeOf(site)}`;
  return button({ class: 'jaxcb-link jaxcb-site-show', title: label, 'aria-label': label }, act, calls);
}

/** ` · vmap 4 × 3`, of the only variant; empty if there is no vmap, or if shapes differ. */
function vmapsOf({ shapes: [only, ...others] }: Site): string {
  return only?.sizes && !others.length ? ` · vmap ${only.sizes}` : '';
}

function swatch(colour: number): HTMLElement {
  const node = h('span', { class: 'jaxcb-swatch', 'aria-hidden': 'true' });
  node.style.setProperty('--jaxcb-own', `var(${siteColour(colour)})`);
  return node;
}

function whereOf(site: Site, reveal: SiteActions['reveal']): HTMLElement {
  const where = placeOf(site);
  if (!reveal || !site.cell) {
    return h('span', { class: 'jaxcb-site-where', title: where }, where);
  }
  const place = {
    cell: site.cell_id,
    line: site.cell_line,
    source: site.source,
    elsewhere: inAnotherCell(site)
  };
  const attributes = { class: 'jaxcb-site-where jaxcb-link', title: `go to ${where}` };
  return button(attributes, () => reveal(place), where);
}

/** Whether a site is in another cell than the one that was recorded. */
export function inAnotherCell({ where }: Site): boolean {
  return /^line [\d:]+, another cell/.test(where); // the names of callers may follow
}

/** Time and its share of all time in host functions; nothing if times were not saved. */
function timeOf({ calls, host_ns: ns }: Site, facts: Facts): Child[] {
  const total = hostTime(facts);
  if (ns === null || !calls || !total) {
    return [];
  }
  const share = ns / total;
  const bar = h('span', { class: 'jaxcb-share', 'aria-hidden': 'true' }, h('span'));
  (bar.firstChild as HTMLElement).style.width = `${(100 * share).toFixed(1)}%`;
  const words = shareWords(share);
  const title = `${words} of the time in host functions`;
  return [bar, h('span', { title }, timeWords(ns), h('small', {}, ` ${words}`))];
}
