/** The filters of calls, with the number of calls that pass; useless filters are hidden. */

import { threadName } from '../../data/call.js';
import { firstNotFinite } from '../../data/not-finite.js';
import phrases from '../../data/phrases.json';
import { EVERYTHING, type Store } from '../../data/store.js';
import { type Figures } from '../distribution/figures.js';
import { rangeWords } from '../distribution/histogram.js';
import { button, h, set, setText } from '../../dom/elements.js';
import { numberWords } from '../../data/words.js';

const MOST_OPTIONS = 2000;

export class Filters {
  readonly node: HTMLElement;
  private readonly text = h('input', {
    type: 'search',
    placeholder: 'Search',
    'aria-label': 'Search calls',
    title: 'Function, line, thread, error, element or value',
    spellcheck: 'false'
  });
  private readonly site = h('select', {});
  private readonly thread = h('select', {});
  private readonly errors = h('input', { type: 'checkbox' });
  private readonly notFinite = h('input', { type: 'checkbox' });
  private readonly first = button({}, () => jumpToFirst(this.store), 'Jump to first');
  private readonly labels: Readonly<
    Record<'site' | 'thread' | 'errors' | 'notFinite', HTMLElement>
  >;
  private readonly durations = button({ class: 'jaxcb-table-chip' }, () => this.narrow({ durations: null }));
  private readonly clear = button({}, () => this.store.narrow(EVERYTHING), 'Clear filters');
  private readonly count = h('output', { class: 'jaxcb-table-count' });

  /** Args: figures: they have the number of calls of each site and thread. */
  constructor(
    private readonly store: Store,
    private readonly figures: Figures
  ) {
    this.listen();
    this.labels = {
      site: h('label', {}, 'Site ', this.site),
      thread: h('label', {}, 'Thread ', this.thread),
      errors: h('label', {}, this.errors, ' failed only'),
      notFinite: h('label', {}, this.notFinite, ` ${phrases.words.not_finite} only`)
    };
    const { site, thread, errors, notFinite } = this.labels;
    const attributes = { class: 'jaxcb-table-filters', role: 'group', 'aria-label': 'Filter calls' };
    this.node = h('div', attributes, this.text, site, thread, errors, notFinite, this.first);
    this.node.append(this.durations, this.clear, this.count);
    const title = `Jump to the first call with ${phrases.words.not_finite}`;
    set(this.first, { title, 'aria-label': title });
    this.relabel();
  }

  /** Handles a change of the labels. */
  relabel(): void {
    const { labels } = this.store;
    const { sites, threads } = this.figures;
    const names = labels.threads.map((_, thread) => threadName(this.store, thread));
    const bySite = new Map(sites.map(({ site, calls }) => [site, calls]));
    this.site.replaceChildren(...options('all sites', labels.sites, bySite));
    this.thread.replaceChildren(...options('all threads', names, threads));
    this.node.hidden = this.store.calls.length < 2;
    this.labels.site.hidden = labels.sites.length < 2;
    this.labels.thread.hidden = labels.threads.length < 2;
    this.labels.errors.hidden = labels.errors.every(error => error === phrases.words.stopped);
    this.labels.notFinite.hidden = this.first.hidden = labels.notFinite.size === 0;
    this.sync();
  }

  /** Handles a change of the filter. */
  sync(): void {
    const { site, thread, errors, notFinite, durations, text } = this.store.filter;
    this.site.value = String(site ?? '');
    this.thread.value = String(thread ?? '');
    this.errors.checked = errors;
    this.notFinite.checked = notFinite;
    if (this.text.value !== text) {
      this.text.value = text;
    }
    const range = durations && rangeWords(durations);
    this.hide(this.durations, !range);
    this.durations.replaceChildren(range ?? '', h('span', { 'aria-hidden': 'true' }, '✕'));
    this.durations.setAttribute('aria-label', `${range}: remove this filter`);
    this.hide(this.clear, this.store.showsAll());
  }

  /** Sets the number of calls that are shown. */
  setShown(shown: number): void {
    setText(this.count, this.store.countWords(shown));
  }

  private listen(): void {
    this.text.addEventListener('input', () => this.narrow({ text: this.text.value }));
    this.site.addEventListener('change', () => this.narrow({ site: chosen(this.site) }));
    this.thread.addEventListener('change', () => this.narrow({ thread: chosen(this.thread) }));
    this.errors.addEventListener('change', () => this.narrow({ errors: this.errors.checked }));
    this.notFinite.addEventListener('change', () =>
      this.narrow({ notFinite: this.notFinite.checked })
    );
  }

  /** A button that disappears gives its focus to the search. */
  private hide(button: HTMLElement, hidden: boolean): void {
    if (hidden && button === document.activeElement) {
      this.text.focus();
    }
    button.hidden = hidden;
  }

  private narrow(part: Partial<Store['filter']>): void {
    this.store.narrow({ ...this.store.filter, ...part });
  }
}

/** Selects the first call with NaN or infinity, also if the filter does not show it. */
function jumpToFirst(store: Store): void {
  const first = firstNotFinite(store.labels.notFinite);
  if (first !== null && !store.shows(first)) {
    store.narrow(EVERYTHING);
  }
  store.select(first);
}

function chosen(select: HTMLSelectElement): number | null {
  return select.value === '' ? null : Number(select.value);
}

/** `bessel, line 3 (1,200)`: the options with their numbers of calls. */
function options(
  all: string,
  texts: readonly string[],
  calls: ReadonlyMap<number | null, number>
): HTMLOptionElement[] {
  const few = texts.slice(0, MOST_OPTIONS);
  return [
    h('option', { value: '' }, all),
    ...few.map((text, place) => {
      const count = numberWords(calls.get(place) ?? 0);
      return h('option', { value: place }, `${text} (${count})`);
    })
  ];
}
