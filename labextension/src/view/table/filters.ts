/** The filters above the table, with the number of calls that pass; useless filters are hidden. */

import { threadName } from '../data/call.js';
import { h } from '../dom.js';
import type { Store } from '../data/store.js';

const MOST_OPTIONS = 2000;

export class Filters {
  readonly node: HTMLElement;
  private readonly site = h('select', {});
  private readonly thread = h('select', {});
  private readonly errors = h('input', { type: 'checkbox' });
  private readonly labels: Readonly<Record<'site' | 'thread' | 'errors', HTMLElement>>;
  private readonly count = h('output', { class: 'jaxcb-table-count' });

  constructor(private readonly store: Store) {
    this.site.addEventListener('change', () => this.narrow({ site: chosen(this.site) }));
    this.thread.addEventListener('change', () => this.narrow({ thread: chosen(this.thread) }));
    this.errors.addEventListener('change', () => this.narrow({ errors: this.errors.checked }));
    this.labels = {
      site: h('label', {}, 'Site ', this.site),
      thread: h('label', {}, 'Thread ', this.thread),
      errors: h('label', {}, this.errors, ' failed only')
    };
    const { site, thread, errors } = this.labels;
    const attributes = { class: 'jaxcb-table-filters', role: 'group', 'aria-label': 'Filter calls' };
    this.node = h('div', attributes, site, thread, errors, this.count);
    this.relabel();
  }

  /** Handles a change of the labels. */
  relabel(): void {
    const { labels } = this.store;
    const threads = labels.threads.map((_, thread) => threadName(this.store, thread));
    this.site.replaceChildren(...options('all sites', labels.sites));
    this.thread.replaceChildren(...options('all threads', threads));
    this.labels.site.hidden = labels.sites.length < 2;
    this.labels.thread.hidden = labels.threads.length < 2;
    this.labels.errors.hidden = labels.errors.length === 0;
    this.sync();
  }

  /** Handles a change of the filter. */
  sync(): void {
    const { site, thread, errors } = this.store.filter;
    this.site.value = String(site ?? '');
    this.thread.value = String(thread ?? '');
    this.errors.checked = errors;
  }

  /** Sets the number of calls that are shown. */
  setShown(shown: number): void {
    const words = this.store.countWords(shown);
    if (this.count.textContent !== words) {
      this.count.textContent = words;
    }
  }

  private narrow(part: Partial<Store['filter']>): void {
    this.store.narrow({ ...this.store.filter, ...part });
  }
}

function chosen(select: HTMLSelectElement): number | null {
  return select.value === '' ? null : Number(select.value);
}

function options(all: string, texts: readonly string[]): HTMLOptionElement[] {
  const few = texts.slice(0, MOST_OPTIONS);
  return [
    h('option', { value: '' }, all),
    ...few.map((text, place) => h('option', { value: place }, text))
  ];
}
