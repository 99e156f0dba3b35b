/** The state that the views of one recording share: calls, filter and selection. */

import { coloursOf } from '../colours.js';
import { Calls } from './columns.js';
import { type Facts, type Measured, type Variant } from './schema.js';
import { callWords, someOf } from './words.js';

/** The names for the numbers in the columns of `Calls`. */
export interface Labels {
  readonly sites: readonly string[]; // "bessel, line 3"
  readonly colours: readonly number[]; // by site
  readonly siteOfVariant: readonly number[];
  readonly variants: readonly Variant[]; // empty while the cell is running
  readonly threads: readonly string[];
  readonly errors: readonly string[];
}

/** Which calls the table and the timeline show; `null`: all. */
export interface Filter {
  readonly site: number | null;
  readonly thread: number | null;
  readonly errors: boolean; // only calls that failed
}

export const EVERYTHING: Filter = { site: null, thread: null, errors: false };

export type Change = 'calls' | 'labels' | 'selected' | 'filter';

export class Store {
  readonly calls = new Calls();
  labels: Labels;
  selected: number | null = null; // a row of `calls`
  filter: Filter = EVERYTHING;
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
    const { site, thread, errors } = this.filter;
    return (
      (site === null || this.site(row) === site) &&
      (thread === null || this.calls.thread(row) === thread) &&
      (!errors || this.calls.error(row) !== 0)
    );
  }

  /** Whether all rows pass the filter. */
  showsAll(): boolean {
    const { site, thread, errors } = this.filter;
    return site === null && thread === null && !errors;
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

/** The labels of a complete recording. */
export function labelsOf(facts: Facts, measured: Measured): Labels {
  return {
    sites: facts.sites.map(site => `${site.function}, ${site.where}`),
    colours: coloursOf(facts.sites),
    siteOfVariant: facts.sites.flatMap((site, place) => site.shapes.map(() => place)),
    variants: facts.sites.flatMap(site => site.shapes),
    threads: measured.threads,
    errors: measured.errors
  };
}
