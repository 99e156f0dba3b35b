/** The state that the views of one recording share: calls, filter and selection. */

import { Calls } from './columns.js';
import { EVERYTHING, type Filter, testsOf } from './filter.js';
import type { Labels } from './labels.js';
import type { Test } from './search.js';
import { callWords, someOf } from './words.js';

export { EVERYTHING, type Filter } from './filter.js';

/** How the views show the calls. They read it when they are built, and write what the user chooses. */
export interface Layout {
  zoom: readonly [from: number, to: number] | null; // of the timeline, in ns; null: not zoomed
  colourBy: 'site' | 'duration';
  height: number | null; // of the timeline's lanes, in pixels; null: the user has not dragged it
  sort: { readonly column: string; readonly descending: boolean } | null; // null: as recorded
}

export type Change = 'calls' | 'labels' | 'selected' | 'filter';

export class Store {
  readonly calls = new Calls();
  labels: Labels;
  selected: number | null = null; // a row of `calls`
  filter: Filter = EVERYTHING;
  nowNs = 0; // in a running cell; since the first call, as the times of calls
  layout: Layout = { zoom: null, colourBy: 'site', height: null, sort: null };
  private tests: readonly Test[] = [];
  private readonly listeners = new Set<(change: Change) => void>();

  constructor(labels: Labels) {
    this.labels = labels;
  }

  /** Calls `listener` after every change; returns a function that removes it. */
  on(listener: (change: Change) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Notifies listeners that rows were added to `calls`. */
  grown(): void {
    this.notify('calls');
  }

  relabel(labels: Labels): void {
    this.labels = labels;
    this.tests = testsOf(this.filter, labels, this.calls);
    this.notify('labels');
  }

  /** Selects a row; none if it does not exist. */
  select(row: number | null): void {
    const found = row !== null && row >= 0 && row < this.calls.length ? row : null;
    if (found !== this.selected) {
      this.selected = found;
      this.notify('selected');
    }
  }

  narrow(filter: Filter): void {
    this.filter = filter;
    this.tests = testsOf(filter, this.labels, this.calls);
    this.notify('filter');
  }

  /** The index of a row's site in `labels.sites`; null: unknown. */
  site(row: number): number | null {
    return this.labels.siteOfVariant[this.calls.variant(row)] ?? null;
  }

  /** The color of the site at an index. */
  colour(site: number): number {
    return this.labels.colours[site] ?? 0;
  }

  /** Whether a row passes the filter. */
  shows(row: number): boolean {
    for (const test of this.tests) {
      if (!test(row)) {
        return false;
      }
    }
    return true;
  }

  /** Whether all rows pass the filter. */
  showsAll(): boolean {
    return this.tests.length === 0;
  }

  /** `12,000 calls`, or `3 of 12,000 calls` with a filter. */
  countWords(shown: number): string {
    const all = this.calls.length;
    return shown === all ? callWords(all) : someOf(shown, all);
  }

  private notify(change: Change): void {
    for (const listener of [...this.listeners]) {
      listener(change);
    }
  }
}
