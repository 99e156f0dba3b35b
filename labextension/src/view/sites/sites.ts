/** The sites of a recording, each with a row and details; the user orders and filters many. */

import { button, h, menu, set } from '../dom/elements.js';
import { pointAt } from '../dom/point.js';
import type { Trend } from '../compare/history.js';
import { trendNode } from '../compare/trend.js';
import { coloursOf } from '../colours.js';
import { notesOf, siteDetails, type Unfolded } from './details.js';
import { siteRow, type SiteActions } from './row.js';
import { proposed } from './words.js';
import { TONES, type Facts, type Site } from '../data/schema.js';
import { numberWords, placeOf, siteTone, statusWord } from '../data/words.js';

const AT_ONCE = 100; // sites that are listed at a time
const MANY = 10; // more sites than this begin with problems, and can be ordered and filtered
const FEW_DIAGRAMS = 4; // diagrams that are expanded initially
const MOST_UNFOLDED = 10; // sites that are unfolded because of what there is to read

export class SiteList {
  readonly node = h('div', { class: 'jaxcb-sites' });
  private readonly list = h('ol', { class: 'jaxcb-sites-list', role: 'list' });
  private readonly more = button({ class: 'jaxcb-sites-more' }, () => this.listMore());
  private readonly unfolded: Unfolded;
  private readonly colours: readonly number[];
  private readonly search = h('input', {
    type: 'search',
    placeholder: 'Search',
    'aria-label': 'Search sites'
  });
  private readonly order = menu('Order of sites', {
    problem: 'Problems first',
    program: 'As in the program',
    time: 'Most time'
  });
  private trends: ReadonlyMap<number, Trend> = new Map(); // by site
  private status = ''; // only sites with it, if not empty
  private places: readonly number[] = []; // of the listed sites, in their order
  private unfoldedSites = 0; // without a click

  constructor(
    private readonly facts: Facts,
    private readonly actions: SiteActions,
    private readonly folds = new Map<number, boolean>() // what the user did, by site
  ) {
    const batched = facts.sites.filter(site => site.shapes.some(({ sizes }) => sizes));
    this.unfolded = { diagrams: batched.length <= FEW_DIAGRAMS };
    this.colours = coloursOf(facts.sites);
    const many = facts.sites.length > MANY;
    this.order.value = many ? 'problem' : 'program';
    this.node.append(...(many ? [this.tools()] : []), this.list, this.more);
    this.arrange();
  }

  dispose(): void {
    this.node.remove();
  }

  /** Unfolds and marks the row of a site, and focuses it. */
  show(place: number): void {
    if (!this.places.includes(place)) {
      this.search.value = '';
      this.node.querySelector<HTMLElement>('[aria-pressed="true"]')?.click();
      this.arrange();
    }
    const at = this.places.indexOf(place);
    while (this.list.childElementCount <= at) {
      this.listMore();
    }
    const item = this.list.children[at] as HTMLElement;
    item.querySelector<HTMLElement>('.jaxcb-site-fold[aria-expanded="false"]')?.click();
    set(item, { tabindex: -1 });
    pointAt(item);
    item.focus({ preventScroll: true });
  }

  /** Shows how the time of sites went in the last runs of the cell. */
  trace(trends: ReadonlyMap<number, Trend>): void {
    this.trends = trends;
    [...this.list.children].forEach((item, at) => {
      item.querySelector('.jaxcb-trend')?.remove();
      const trend = this.trendOf(this.places[at]!);
      item.querySelector('.jaxcb-site-time')!.prepend(...(trend ? [trend] : []));
    });
  }

  private trendOf(place: number): HTMLElement | null {
    const trend = this.trends.get(place);
    return trend ? trendNode(trend) : null;
  }

  /** The search, a button for each status that is not just kept, and the order. */
  private tools(): HTMLElement {
    const counts = new Map<string, number>();
    for (const { consequence } of this.facts.sites) {
      const word = statusWord(consequence);
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    counts.delete(''); // kept
    const chips = [...counts].map(([status, count]) => {
      const chip = button({ class: 'jaxcb-sites-chip', 'aria-pressed': 'false' }, () => {
        this.status = this.status === status ? '' : status;
        chips.forEach(each =>
          each.setAttribute('aria-pressed', String(each === chip && this.status !== ''))
        );
        this.arrange();
      });
      chip.textContent = `${numberWords(count)} ${status}`;
      return chip;
    });
    this.search.addEventListener('input', () => this.arrange());
    this.order.addEventListener('change', () => this.arrange());
    return h('div', { class: 'jaxcb-sites-tools' }, this.search, ...chips, this.order);
  }

  /** Lists the sites that pass the filters, in the chosen order. */
  private arrange(): void {
    const { sites } = this.facts;
    const words = this.search.value.toLowerCase().split(/\s+/);
    const rank = RANKS[this.order.value as keyof typeof RANKS];
    this.places = [...sites.keys()]
      .filter(place => {
        const { source, function: name, flavor, consequence } = sites[place]!;
        const about = [placeOf(sites[place]!), source, name, flavor, statusWord(consequence)];
        const text = about.join('\n').toLowerCase();
        const wanted = this.status === '' || this.status === statusWord(consequence);
        return wanted && words.every(word => text.includes(word));
      })
      .sort((one, other) => rank(sites[one]!) - rank(sites[other]!));
    this.list.replaceChildren();
    this.unfoldedSites = 0;
    this.listMore();
  }

  private listMore(): void {
    const from = this.list.childElementCount;
    const next = this.places.slice(from, from + AT_ONCE);
    this.list.append(...next.map(place => this.item(place)));
    const left = this.places.length - from - next.length;
    this.more.hidden = left === 0;
    this.more.textContent = `show ${Math.min(left, AT_ONCE)} more of ${left} sites`;
    if (from > 0) {
      // The button has moved or is gone, so the focus continues at the first new site.
      const first = this.list.children[from] as HTMLElement;
      set(first, { tabindex: -1 });
      first.focus();
    }
  }

  /** One line; below it are the details. The first ones with something to read are shown at once. */
  private item(place: number): HTMLElement {
    const site = this.facts.sites[place]!;
    const below = h('div', { class: 'jaxcb-site-below', hidden: true });
    const label = `details of ${site.function}, ${placeOf(site)}`;
    const attributes = { class: 'jaxcb-site-fold', 'aria-label': label, title: label };
    const fold = button(attributes, () => {
      this.folds.set(place, below.hidden === true);
      show(below.hidden === true);
    });
    const show = (shown: boolean): void => {
      if (shown && !below.hasChildNodes()) {
        below.append(...siteDetails(site, this.unfolded, this.actions));
      }
      below.hidden = !shown;
      fold.setAttribute('aria-expanded', String(shown));
    };
    const only = this.facts.sites.length === 1 && site.shapes.some(({ sizes }) => sizes);
    const chosen = this.folds.get(place);
    show(chosen ?? (only || (!isPlain(site) && this.unfoldedSites++ < MOST_UNFOLDED)));
    fold.classList.toggle('jaxcb-empty', !below.hidden && !below.hasChildNodes());
    return h(
      'li',
      { class: 'jaxcb-site' },
      siteRow(this.facts, place, this.colours[place]!, this.actions, fold, this.trendOf(place)),
      below
    );
  }
}

/** Whether there is nothing to say about a site but what its row says. */
function isPlain(site: Site): boolean {
  const { consequence, reason, advice, errors } = site;
  const texts = [reason, advice, ...proposed(site), ...notesOf(site), ...errors];
  return consequence === 'kept' && !texts.some(Boolean);
}

/** What comes first in each order. */
const RANKS = {
  problem: (site: Site) => TONES.indexOf(siteTone(site)),
  program: () => 0,
  time: ({ host_ns }: Site) => -(host_ns ?? 0)
} as const;
