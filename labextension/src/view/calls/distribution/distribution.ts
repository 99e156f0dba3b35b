/** How long the calls of each site took: figures and a histogram, in one row by site. */

import { siteColour } from '../../colours.js';
import type { Store } from '../../data/store.js';
import { counted, failedWords, numberWords, timeWords } from '../../data/words.js';
import { button, type Child, h } from '../../dom/elements.js';
import { siteName } from '../../dom/site-name.js';
import { hideTooltip, tooltip } from '../../dom/tooltip.js';
import { type Figures, shownBins, type SiteFigures } from './figures.js';
import { Histogram, rangeWords } from './histogram.js';

const MOST_FIRST = 8; // sites that are shown before a click
const MOST_SITES = 500;

export class Distribution {
  readonly node: HTMLElement;
  private readonly grid: HTMLElement;
  private readonly box = tooltip();
  private readonly hasFailed: boolean;
  private readonly histograms = new Map<SiteFigures, Histogram>();
  private readonly names = new Map<number, HTMLElement>(); // the buttons that filter by site
  private readonly forget: () => void;

  /** Args: of: `20,000 calls`, what the figures are about. */
  constructor(private readonly store: Store, private readonly figures: Figures, of: string) {
    const { edges, sites, threads, total } = figures;
    this.hasFailed = sites.some(site => site.failed > 0);
    const columns = ['Calls', this.hasFailed && 'Failed', 'Min', 'Median', 'p95', 'Max'];
    const titles = columns.filter(title => title !== false);
    const ends = [edges[0] ?? 0, edges.at(-1) ?? 0] as const;
    const cell = (...words: Child[]) => h('div', { role: 'columnheader' }, ...words);
    const range = cell(
      h('span', { class: 'jaxcb-announced' }, `Histogram, ${rangeWords(ends)}`),
      ...ends.map(ns => h('span', { 'aria-hidden': 'true' }, timeWords(ns)))
    );
    range.className = 'jaxcb-distribution-range';
    const head = { class: 'jaxcb-distribution-head', role: 'row' };
    this.grid = h(
      'div',
      { class: 'jaxcb-distribution-grid', role: 'table', 'aria-label': 'Durations by site' },
      h('div', head, ...['Site', ...titles].map(title => cell(title)), range)
    );
    this.grid.style.setProperty('--jaxcb-distribution-figures', String(titles.length));
    // The duration of a single call has no distribution.
    this.grid.hidden = sites.every(site => site.calls === 1);
    const rest = sites.length - MOST_SITES;
    const showAll = (): void => {
      this.show(MOST_SITES);
      more.replaceWith(...(rest > 0 ? [h('p', {}, `and ${counted(rest, 'more site')}`)] : []));
    };
    const all = `Show all ${counted(Math.min(sites.length, MOST_SITES), 'site')}`;
    const more = button({ class: 'jaxcb-distribution-more' }, showAll, all);
    const over = threads.size > 1 ? `, summed over ${counted(threads.size, 'thread')}` : '';
    const words = `${of} · ${timeWords(total)} in host functions${over}`;
    this.node = h(
      'div',
      { class: 'jaxcb-distribution' },
      h('p', { class: 'jaxcb-distribution-total' }, words),
      this.grid,
      sites.length > MOST_FIRST && more,
      this.box
    );
    this.show(MOST_FIRST);
    this.forget = store.on(change => change === 'filter' && this.draw());
  }

  dispose(): void {
    this.forget();
    hideTooltip(this.box);
  }

  /** Shows the rows of at most `most` sites, those that took longest, in program order. */
  private show(most: number): void {
    const { sites } = this.figures;
    const longest = new Set([...sites].sort((a, b) => b.total - a.total).slice(0, most));
    this.histograms.clear();
    this.names.clear();
    const rows = sites.filter(site => longest.has(site)).map(site => this.row(site));
    this.grid.replaceChildren(this.grid.firstChild!, ...rows);
    this.draw();
  }

  private row(figures: SiteFigures): HTMLElement {
    const { store } = this;
    const { calls, failed, least, median, most, p95, site, slowest } = figures;
    const name = site === null ? 'unknown site' : store.labels.sites[site]!;
    const colour = site === null ? '--jaxcb-site-mixed' : siteColour(store.colour(site));
    const cell = (words: Child, css = 'number') =>
      h('div', { role: 'cell', class: `jaxcb-distribution-${css}` }, words);
    const title = `Select call ${numberWords(slowest + 1)}, the slowest`;
    const select = (): void => store.select(slowest);
    const histogram = new Histogram(store, this.figures, figures, name, this.box);
    this.histograms.set(figures, histogram);
    const row = h(
      'div',
      { role: 'row', class: 'jaxcb-distribution-row' },
      h('div', { role: 'rowheader' }, this.name(site, name)),
      cell(numberWords(calls)),
      this.hasFailed && cell(failed ? failedWords(numberWords(failed)) : '', 'failed'),
      ...[least, median, p95].map(ns => cell(timeWords(ns))),
      cell(button({ class: 'jaxcb-link', title }, select, timeWords(most))),
      h('div', { role: 'cell' }, histogram.node)
    );
    row.style.setProperty('--jaxcb-own', `var(${colour})`);
    return row;
  }

  /** The name of a site; if there are several, a button that filters by it. */
  private name(site: number | null, name: string): HTMLElement {
    const swatch = h('span', { class: 'jaxcb-swatch', 'aria-hidden': 'true' });
    const words = h('span', { class: 'jaxcb-site-name', title: name }, ...siteName(name));
    if (site === null || this.figures.sites.length === 1) {
      return h('span', { class: 'jaxcb-distribution-site' }, swatch, words);
    }
    const attributes = { class: 'jaxcb-distribution-site', 'aria-label': `Only calls of ${name}` };
    const filterBy = (): void => {
      const { filter } = this.store;
      this.store.narrow({ ...filter, site: filter.site === site ? null : site });
    };
    const only = button(attributes, filterBy, swatch, words);
    this.names.set(site, only);
    return only;
  }

  private draw(): void {
    const { figures, histograms, names, store } = this;
    const shown = shownBins(store, figures);
    figures.sites.forEach((site, nth) => histograms.get(site)?.draw(shown[nth]!));
    const pressed = (site: number): string => String(store.filter.site === site);
    names.forEach((name, site) => name.setAttribute('aria-pressed', pressed(site)));
  }
}
