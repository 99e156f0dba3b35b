/** How long the calls of each site took: figures and a histogram, in one row by site. */

import { button, h, type Child } from '../../dom/elements.js';
import { siteColour } from '../../colours.js';
import type { Change, Store } from '../../data/store.js';
import { counted, failedWords, numberWords, timeWords } from '../../data/words.js';
import { siteName } from '../../dom/site-name.js';
import { hideTooltip, placeTooltip, tooltip } from '../../dom/tooltip.js';
import { type Figures, shownBins, type SiteFigures } from './figures.js';
import { Histogram, rangeWords } from './histogram.js';

const MOST_FIRST = 8; // sites that are shown before a click
const MOST_SITES = 500;

export class Distribution {
  readonly node: HTMLElement;
  private readonly grid = h('div', { class: 'jaxcb-distribution-grid', role: 'table' });
  private readonly box = tooltip();
  private readonly histograms = new Map<SiteFigures, Histogram>();
  private readonly buttons = new Map<number, HTMLElement>();
  private readonly forget: () => void;

  /** Args: of: `20,000 calls`, what the figures are about. */
  constructor(
    private readonly store: Store,
    private readonly figures: Figures,
    of: string
  ) {
    const failed = figures.sites.some(site => site.failed > 0);
    const columns = ['Calls', ...(failed ? ['Failed'] : []), 'Min', 'Median', 'p95', 'Max'];
    this.grid.setAttribute('aria-label', 'Durations by site');
    this.grid.style.setProperty('--jaxcb-distribution-figures', String(columns.length));
    this.grid.append(this.head(columns));
    this.show(MOST_FIRST);
    const total = h('p', { class: 'jaxcb-distribution-total' }, totalWords(of, figures));
    // The duration of a single call has no distribution.
    this.grid.hidden = figures.sites.every(site => site.calls === 1);
    this.node = h('div', { class: 'jaxcb-distribution' }, total, this.grid, this.box);
    this.more();
    this.forget = store.on(change => this.changed(change));
    this.draw();
  }

  dispose(): void {
    this.forget();
    hideTooltip(this.box);
  }

  private head(columns: readonly string[]): HTMLElement {
    const { edges } = this.figures;
    const [first, last] = [edges[0] ?? 0, edges.at(-1) ?? 0];
    const range = h(
      'div',
      { role: 'columnheader', class: 'jaxcb-distribution-range' },
      h('span', { class: 'jaxcb-announced' }, `Histogram, ${rangeWords([first, last])}`),
      h('span', { 'aria-hidden': 'true' }, timeWords(first)),
      h('span', { 'aria-hidden': 'true' }, timeWords(last))
    );
    const titles = ['Site', ...columns].map(title => h('div', { role: 'columnheader' }, title));
    return h('div', { class: 'jaxcb-distribution-head', role: 'row' }, ...titles, range);
  }

  /** Adds the rows of at most `most` sites, those that took longest, in program order. */
  private show(most: number): void {
    const { sites } = this.figures;
    const longest = [...sites].sort((a, b) => b.total - a.total).slice(0, most);
    this.histograms.clear();
    this.buttons.clear();
    const rows = sites.filter(site => longest.includes(site)).map(site => this.row(site));
    this.grid.replaceChildren(this.grid.firstChild!, ...rows);
  }

  /** Adds a button that shows the other sites. */
  private more(): void {
    const { length } = this.figures.sites;
    if (length <= MOST_FIRST) {
      return;
    }
    const rest = length - MOST_SITES;
    const words = `Show all ${counted(Math.min(length, MOST_SITES), 'site')}`;
    const act = (): void => {
      this.show(MOST_SITES);
      this.draw();
      more.replaceWith(...(rest > 0 ? [h('p', {}, `and ${counted(rest, 'more site')}`)] : []));
    };
    const more = button({ class: 'jaxcb-distribution-more' }, act, words);
    this.grid.after(more);
  }

  private row(site: SiteFigures): HTMLElement {
    const failed = this.figures.sites.some(each => each.failed > 0);
    const cell = (words: Child, name = 'number') =>
      h('div', { role: 'cell', class: `jaxcb-distribution-${name}` }, words);
    const name = site.site === null ? 'unknown site' : this.store.labels.sites[site.site]!;
    const histogram = this.histogram(site, name);
    const row = h(
      'div',
      { role: 'row', class: 'jaxcb-distribution-row' },
      h('div', { role: 'rowheader' }, this.name(site.site, name)),
      cell(numberWords(site.calls)),
      failed && cell(site.failed ? failedWords(numberWords(site.failed)) : '', 'failed'),
      ...[site.least, site.median, site.p95].map(ns => cell(timeWords(ns))),
      cell(this.slowest(site)),
      h('div', { role: 'cell' }, histogram.node)
    );
    row.style.setProperty('--jaxcb-own', `var(${colourOf(this.store, site.site)})`);
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
    this.buttons.set(site, only);
    return only;
  }

  private slowest({ most, slowest }: SiteFigures): HTMLElement {
    const title = `Select call ${numberWords(slowest + 1)}, the slowest`;
    const act = (): void => this.store.select(slowest);
    return button({ class: 'jaxcb-link', title }, act, timeWords(most));
  }

  private histogram(site: SiteFigures, name: string): Histogram {
    const { store, box, figures } = this;
    const several = figures.sites.length > 1;
    const histogram = new Histogram(site, figures.edges, name, {
      choose: durations => {
        const own = several && durations ? site.site : store.filter.site;
        store.narrow({ ...store.filter, site: own, durations });
      },
      describe: ([range, ...words], x, y) => {
        box.replaceChildren(h('strong', {}, range), ...words.map(each => h('p', {}, each)));
        placeTooltip(box, x, y);
      },
      leave: () => hideTooltip(box)
    });
    this.histograms.set(site, histogram);
    return histogram;
  }

  private changed(change: Change): void {
    if (change === 'filter') {
      this.draw();
    }
  }

  private draw(): void {
    const { filter } = this.store;
    const shown = shownBins(this.store, this.figures);
    this.figures.sites.forEach((site, place) => {
      const own = filter.site === null || filter.site === site.site;
      this.histograms.get(site)?.draw(shown[place]!, own ? filter.durations : null);
    });
    for (const [site, button] of this.buttons) {
      button.setAttribute('aria-pressed', String(filter.site === site));
    }
  }
}

function colourOf(store: Store, site: number | null): string {
  return site === null ? '--jaxcb-site-mixed' : siteColour(store.colour(site));
}

/** `20,000 calls · 403 ms in host functions, summed over 2 threads`. */
function totalWords(of: string, { total, threads }: Figures): string {
  const over = threads.size > 1 ? `, summed over ${counted(threads.size, 'thread')}` : '';
  return `${of} · ${timeWords(total)} in host functions${over}`;
}
