/** The calls of a recording: a timeline and a table with a common selection. */

import { h } from './dom.js';
import { appendRaw, type RawCalls } from './data/raw.js';
import { sampleWords } from './sites/words.js';
import type { Facts, Measured } from './data/schema.js';
import { EVERYTHING, labelsOf, Store } from './data/store.js';
import type { CallsLook } from './remembered.js';
import { CallTable } from './table/table.js';
import { Timeline } from './timeline/timeline.js';
import { unpack } from './data/unpack.js';
import { callWords } from './data/words.js';

export class CallsPanel {
  readonly node = h('div', { class: 'jaxcb-calls' });
  private readonly store: Store;
  private readonly program: string;
  private readonly parts: { dispose(): void }[] = [];
  private wanted: number | null = null; // the row to select when there are rows
  private opened = false;
  private disposed = false;

  constructor(
    private readonly facts: Facts,
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
    const { filter, calls, selected } = this.store;
    return { program: this.program, filter, selected: calls.length ? selected : this.wanted };
  }

  /** Applies filter and selection, unless they are for the sites of another program. */
  restore(look: CallsLook): void {
    if (look.program === this.program) {
      this.wanted = look.selected;
      this.store.narrow(look.filter);
      this.store.select(look.selected);
    }
  }

  /** Shows the calls of one site only; null: of all sites. */
  narrow(site: number | null): void {
    this.store.narrow({ ...EVERYTHING, site });
  }

  /** Builds the content when the panel is first shown. */
  async open(): Promise<void> {
    if (this.opened) {
      return;
    }
    this.opened = true;
    this.node.replaceChildren(h('p', { class: 'jaxcb-muted', role: 'status' }, 'unpacking…'));
    try {
      const raw = this.raw ?? (this.measured.calls && (await unpack(this.measured.calls)));
      if (!this.disposed) {
        this.fill(raw);
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : 'the data is malformed.';
      const words = `✕ cannot show the calls: ${why}`;
      this.node.replaceChildren(h('p', { class: 'jaxcb-bad', role: 'alert' }, words));
    }
  }

  dispose(): void {
    this.disposed = true;
    for (const part of this.parts) {
      part.dispose();
    }
    this.node.remove();
  }

  private fill(raw: RawCalls | null): void {
    if (raw) {
      appendRaw(this.store, raw);
    }
    const missing = this.missingWords(raw?.rows ?? 0);
    this.node.replaceChildren(...(missing ? [h('p', { class: 'jaxcb-muted' }, missing)] : []));
    if (raw?.rows) {
      const timeline = new Timeline(this.store);
      const table = new CallTable(this.store, samplesByRow(this.facts, this.measured));
      this.parts.push(timeline, table);
      this.node.append(timeline.node, table.node);
      this.store.select(this.wanted);
    }
  }

  private missingWords(saved: number): string {
    const missing = this.raw ? 0 : this.measured.calls_not_saved;
    if (!missing) {
      return saved ? '' : 'no calls are saved';
    }
    const all = callWords(saved + missing);
    return saved
      ? `the first ${saved.toLocaleString('en-US')} of ${all} are saved`
      : `none of ${all} are saved`;
  }
}

function samplesByRow(facts: Facts, measured: Measured): (row: number) => string {
  const words = new Map<number, string>();
  facts.sites.forEach((site, place) =>
    site.sample_values.forEach((sample, number) => {
      const row = measured.sample_rows[place]?.[number] ?? -1;
      if (row >= 0) {
        words.set(row, sampleWords(sample));
      }
    })
  );
  return row => words.get(row) ?? '';
}
