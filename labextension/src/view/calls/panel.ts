/** The calls of a recording: a timeline and a table with a common selection. */

import { add, h } from '../dom/elements.js';
import { AT_ONCE, pause } from '../data/pause.js';
import { appendInSteps, callsOf, type RawCalls } from '../data/raw.js';
import type { Facts, Measured } from '../data/schema.js';
import { labelsOf } from '../data/labels.js';
import { EVERYTHING, Store } from '../data/store.js';
import { Distribution } from './distribution/distribution.js';
import { figuresOf } from './distribution/figures.js';
import type { CallsLook } from '../remembered.js';
import { CallTable } from './table/table.js';
import { Timeline } from './timeline/timeline.js';
import { callWords, counted, failedWords, numberWords, warningWords } from '../data/words.js';

export class CallsPanel {
  readonly node = h('div', { class: 'jaxcb-calls' });
  private readonly store: Store;
  private readonly program: string;
  private readonly parts: { dispose(): void }[] = [];
  private wanted: number | null = null; // the row to select when there are rows
  private opened = false;
  private disposed = false;

  constructor(
    facts: Facts,
    private readonly measured: Measured,
    private readonly raw: RawCalls | null,
    look: CallsLook
  ) {
    this.store = new Store(labelsOf(facts, measured));
    this.program = JSON.stringify(this.store.labels.sites);
    this.restore(look);
  }

  /** Whether there are calls to show. */
  static has(measured: Measured, raw: RawCalls | null): boolean {
    return (raw ?? measured.calls)?.rows !== undefined || measured.calls_not_saved > 0;
  }

  get look(): CallsLook {
    const { filter, layout } = this.store;
    const selected = this.parts.length ? this.store.selected : this.wanted;
    return { program: this.program, filter, selected, layout: { ...layout } };
  }

  /** Applies a look; what is for the sites of another program is left out. */
  restore(look: CallsLook): void {
    const same = look.program === this.program;
    this.store.layout = { ...look.layout, ...(same ? {} : { zoom: null }) };
    if (same) {
      this.wanted = look.selected;
      this.store.narrow(look.filter);
      this.store.select(look.selected);
    }
  }

  /** Shows the calls of one site only; null: of all sites. */
  narrow(site: number | null): void {
    this.store.narrow({ ...EVERYTHING, site });
  }

  /** Selects a call, also if the filter does not show it. */
  select(row: number): void {
    this.wanted = row;
    if (!this.store.shows(row)) {
      this.store.narrow(EVERYTHING);
    }
    this.store.select(row);
  }

  /** Builds the content when the panel is first shown. */
  async open(): Promise<void> {
    if (this.opened) {
      return;
    }
    this.opened = true;
    this.node.replaceChildren(h('p', { class: 'jaxcb-muted', role: 'status' }, 'unpacking…'));
    try {
      await this.fill(await callsOf(this.measured.calls, this.raw));
    } catch (error) {
      const why = error instanceof Error ? error.message : 'the data is malformed.';
      const words = failedWords(`cannot show the calls: ${why}`);
      this.node.replaceChildren(h('p', { class: 'jaxcb-bad', role: 'alert' }, words));
    }
  }

  dispose(): void {
    this.disposed = true;
    this.parts.forEach(part => part.dispose());
    this.node.remove();
  }

  private async fill(raw: RawCalls | null): Promise<void> {
    const { store } = this;
    if (raw) {
      await appendInSteps(store, raw);
    }
    const figures = await figuresOf(store);
    if (store.calls.length > AT_ONCE) {
      await pause();
    }
    if (this.disposed) {
      return;
    }
    const missing = this.missingWords(raw?.rows ?? 0);
    const problem = raw?.crossingsProblem;
    const warning = problem && warningWords(`cannot show crossings: ${problem}`);
    this.node.replaceChildren();
    add(this.node, [
      missing && h('p', { class: 'jaxcb-muted' }, missing),
      warning && h('p', { class: 'jaxcb-warning', role: 'alert' }, warning)
    ]);
    if (raw?.rows) {
      const isSaved = !this.raw && this.measured.calls_not_saved > 0;
      const of = isSaved ? counted(raw.rows, 'saved call') : callWords(raw.rows);
      const distribution = new Distribution(store, figures, of);
      const timeline = new Timeline(store);
      const table = new CallTable(store, figures);
      this.parts.push(distribution, timeline, table);
      this.node.append(distribution.node, table.filters.node, timeline.node, table.node);
      store.select(this.wanted);
    }
  }

  /** What is not shown, and why. */
  private missingWords(saved: number): string {
    const missing = this.raw ? 0 : this.measured.calls_not_saved;
    if (!missing) {
      return saved ? '' : 'no calls are saved';
    }
    const all = callWords(saved + missing);
    const some = saved ? `the first ${numberWords(saved)}` : 'none';
    return `${some} of ${all} are saved`;
  }
}
