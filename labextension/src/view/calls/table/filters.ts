/** The filters of calls, with the number of calls that pass; useless filters are hidden. */

import { threadName } from '../../data/call.js';
import { firstNotFinite } from '../../data/not-finite.js';
import phrases from '../../data/phrases.json';
import { EVERYTHING, type Filter, type Store } from '../../data/store.js';
import { numberWords } from '../../data/words.js';
import { button, h, setText } from '../../dom/elements.js';
import type { Figures } from '../distribution/figures.js';
import { rangeWords } from '../distribution/histogram.js';

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
  private readonly selects = { site: h('select'), thread: h('select') };
  private readonly checks = {
    errors: h('input', { type: 'checkbox' }),
    notFinite: h('input', { type: 'checkbox' })
  };
  private readonly labels = {
    site: h('label', {}, 'Site ', this.selects.site),
    thread: h('label', {}, 'Thread ', this.selects.thread),
    errors: h('label', {}, this.checks.errors, ' failed only'),
    notFinite: h('label', {}, this.checks.notFinite, ` ${phrases.words.not_finite} only`)
  };
  private readonly first: HTMLElement;
  private readonly durations = button(
    { class: 'jaxcb-table-chip' },
    () => this.narrow({ durations: null })
  );
  private readonly clear = button({}, () => this.store.narrow(EVERYTHING), 'Clear filters');
  private readonly count = h('output', { class: 'jaxcb-table-count' });

  /** Args: figures: they have the number of calls of each site and thread. */
  constructor(private readonly store: Store, private readonly figures: Figures) {
    const { text, selects, checks, labels } = this;
    const title = `Jump to the first call with ${phrases.words.not_finite}`;
    this.first = button({ title, 'aria-label': title }, () => this.jump(), 'Jump to first');
    text.addEventListener('input', () => this.narrow({ text: text.value }));
    for (const [field, select] of Object.entries(selects)) {
      const chosen = () => (select.value === '' ? null : Number(select.value));
      select.addEventListener('change', () => this.narrow({ [field]: chosen() }));
    }
    for (const [field, check] of Object.entries(checks)) {
      check.addEventListener('change', () => this.narrow({ [field]: check.checked }));
    }
    const css = 'jaxcb-table-filters';
    this.node = h('div', { class: css, role: 'group', 'aria-label': 'Filter calls' }, text);
    this.node.append(...Object.values(labels), this.first, this.durations, this.clear, this.count);
    this.relabel();
  }

  /** Handles a change of the labels. */
  relabel(): void {
    const { figures, labels, selects, store } = this;
    const { errors, notFinite, sites, threads } = store.labels;
    const bySite = new Map(figures.sites.map(({ site, calls }) => [site, calls]));
    const names = threads.map((_, thread) => threadName(store, thread));
    selects.site.replaceChildren(...options('all sites', sites, bySite));
    selects.thread.replaceChildren(...options('all threads', names, figures.threads));
    this.node.hidden = store.calls.length < 2;
    labels.site.hidden = sites.length < 2;
    labels.thread.hidden = threads.length < 2;
    labels.errors.hidden = errors.every(error => error === phrases.words.stopped);
    labels.notFinite.hidden = this.first.hidden = notFinite.size === 0;
  }

  /** Shows the filter, and the number of calls that pass. */
  sync(shown: number): void {
    const { checks, durations, selects, store, text } = this;
    const { filter } = store;
    selects.site.value = String(filter.site ?? '');
    selects.thread.value = String(filter.thread ?? '');
    checks.errors.checked = filter.errors;
    checks.notFinite.checked = filter.notFinite;
    if (text.value !== filter.text) {
      text.value = filter.text;
    }
    const range = filter.durations && rangeWords(filter.durations);
    durations.replaceChildren(range ?? '', h('span', { 'aria-hidden': 'true' }, '✕'));
    durations.setAttribute('aria-label', `${range}: remove this filter`);
    for (const [node, isHidden] of [[durations, !range], [this.clear, store.showsAll()]] as const) {
      if (isHidden && node === document.activeElement) {
        text.focus();
      }
      node.hidden = isHidden;
    }
    setText(this.count, store.countWords(shown));
  }

  private narrow(part: Partial<Filter>): void {
    this.store.narrow({ ...this.store.filter, ...part });
  }

  /** Selects the first call with NaN or infinity, also if the filter does not show it. */
  private jump(): void {
    const first = firstNotFinite(this.store.labels.notFinite);
    if (first !== null && !this.store.shows(first)) {
      this.store.narrow(EVERYTHING);
    }
    this.store.select(first);
  }
}

/** `bessel, line 3 (1,200)`: the options with their numbers of calls. */
function options(
  all: string,
  texts: readonly string[],
  calls: ReadonlyMap<number | null, number>
): HTMLOptionElement[] {
  const few = texts.slice(0, MOST_OPTIONS).map((text, value) =>
    h('option', { value }, `${text} (${numberWords(calls.get(value) ?? 0)})`)
  );
  return [h('option', { value: '' }, all), ...few];
}
