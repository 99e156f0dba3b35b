/** A table with a row for every host call, of which only the visible ones are in the document. */

import { button, h } from '../../dom/elements.js';
import { type Change, EVERYTHING, type Store } from '../../data/store.js';
import type { Figures } from '../distribution/figures.js';
import { type Column, columnsOf, fitting } from './columns.js';
import { Filters } from './filters.js';
import { Head } from './head.js';
import { Order } from './order.js';
import { Rows } from './rows.js';
import { watchLook } from '../timeline/picture/look.js';
import { ROW, Scroll } from './scroll.js';

const HEAD = 26;
const MOST_ROWS = 11; // visible at once
const BORDER = 2;
let tables = 0;

export class CallTable {
  readonly node: HTMLElement;
  readonly filters: Filters;
  private readonly grid: HTMLElement;
  private readonly empty: HTMLElement;
  private readonly scroll = new Scroll();
  private readonly order: Order;
  private readonly head = new Head(column => this.sort(column));
  private readonly rows: Rows;
  private readonly columns: readonly Column[];
  private shown: readonly Column[] = []; // those in which rows differ
  private active: number | null = null; // the row that keys move from
  private frameAsked = 0;
  private readonly forget: (() => void)[];

  constructor(
    private readonly store: Store,
    figures: Figures
  ) {
    const id = `jaxcb-table-${++tables}`;
    this.columns = columnsOf(store);
    this.order = new Order(store);
    this.order.column = this.columns.find(({ name }) => name === store.layout.sort?.column) ?? null;
    this.order.descending = store.layout.sort?.descending ?? false;
    this.order.rebuild();
    this.filters = new Filters(store, figures);
    this.rows = new Rows(store, this.order, this.scroll, id);
    this.grid = h('div', {
      class: 'jaxcb-table-grid',
      role: 'grid',
      tabindex: 0,
      'aria-label': 'Host calls'
    });
    this.grid.append(this.head.node, this.rows.node);
    this.empty = this.emptyNote();
    this.node = h('div', { class: 'jaxcb-table' });
    this.node.append(this.grid, this.empty);
    this.grid.addEventListener('scroll', () => this.scrolled());
    this.grid.addEventListener('keydown', event => this.key(event));
    this.rows.node.addEventListener('click', event => this.click(event));
    this.forget = [
      store.on(change => this.changed(change)),
      watchLook(this.grid, () => this.resize())
    ];
    this.resize();
    this.follow();
  }

  dispose(): void {
    this.forget.forEach(each => each());
    cancelAnimationFrame(this.frameAsked);
  }

  private emptyNote(): HTMLElement {
    const all = button({}, () => this.store.narrow(EVERYTHING), 'Show all calls');
    return h('p', { class: 'jaxcb-table-empty' }, 'No matching calls. ', all);
  }

  private changed(change: Change): void {
    if (change === 'calls') {
      this.frameAsked ||= requestAnimationFrame(() => this.grow());
    } else if (change === 'selected') {
      this.follow();
    } else {
      if (change === 'labels') {
        this.filters.relabel();
      }
      this.filters.sync();
      this.order.rebuild();
      this.scrollTo(0);
      this.resize();
      this.follow();
    }
  }

  private grow(): void {
    this.frameAsked = 0;
    this.order.grow();
    this.resize();
  }

  private sort(column: Column): void {
    const again = this.order.column === column;
    this.order.descending = again && !this.order.descending;
    this.order.column = column;
    this.store.layout.sort = { column: column.name, descending: this.order.descending };
    this.order.rebuild();
    this.scrollTo(0);
    this.draw();
  }

  /** Handles a change of the selection, possibly in another view. */
  private follow(): void {
    const { selected } = this.store;
    this.active = selected ?? this.active;
    const place = selected === null ? -1 : this.order.place(selected);
    if (place >= 0) {
      this.reveal(place);
    }
    this.draw();
  }

  private reveal(place: number): void {
    this.measure();
    const bar = this.scroll.reveal(place);
    if (bar !== null) {
      this.grid.scrollTop = bar;
    }
  }

  private scrollTo(bar: number): void {
    this.grid.scrollTop = bar;
    this.measure();
    this.scroll.scrolled(bar);
  }

  private scrolled(): void {
    this.measure();
    this.scroll.scrolled(this.grid.scrollTop);
    this.draw();
  }

  private measure(): void {
    const { clientHeight } = this.grid;
    const height = clientHeight > HEAD ? clientHeight - HEAD : MOST_ROWS * ROW;
    this.scroll.fit(this.order.length, height);
  }

  /** Handles a change of the number of rows. */
  private resize(): void {
    const { length } = this.order;
    const { calls } = this.store;
    this.showColumns();
    const visible = Math.min(Math.max(length, 1), MOST_ROWS);
    this.grid.style.setProperty('--jaxcb-table-height', `${HEAD + ROW * visible + BORDER}px`);
    this.grid.setAttribute('aria-rowcount', String(length + 1));
    this.grid.hidden = length === 0;
    this.empty.hidden = length > 0 || calls.length === 0;
    this.filters.setShown(length);
    this.measure();
    this.draw();
  }

  /** Shows the columns in which rows differ, without those that there is no room for. */
  private showColumns(): void {
    const shown = fitting(this.columns.filter(column => column.differs()), this.grid.clientWidth);
    if (shown.length === this.shown.length && shown.every((each, nth) => each === this.shown[nth])) {
      return;
    }
    this.shown = shown;
    const widths = shown.map(({ pixels, share }) =>
      share ? `minmax(${pixels}px, ${share}fr)` : `${pixels}px`
    );
    const least = shown.reduce((sum, { pixels }) => sum + pixels, 0);
    this.grid.style.setProperty('--jaxcb-table-columns', widths.join(' '));
    this.grid.style.setProperty('--jaxcb-table-width', `${least}px`);
    this.grid.setAttribute('aria-colcount', String(shown.length));
    this.head.show(shown);
    this.rows.clear();
  }

  private draw(): void {
    const columns = this.shown;
    this.head.draw(columns, this.order.column, this.order.descending);
    this.rows.draw(columns, this.active);
    const id = this.active === null ? null : this.rows.idOf(this.active);
    if (id === null) {
      this.grid.removeAttribute('aria-activedescendant');
    } else {
      this.grid.setAttribute('aria-activedescendant', id);
    }
  }

  /** A click selects a row, unless it ends a text selection. */
  private click(event: Event): void {
    const row = this.rows.rowOf(event);
    if (row !== null && !document.getSelection()?.toString()) {
      this.store.select(row);
      this.grid.focus({ preventScroll: true });
    }
  }

  private key(event: KeyboardEvent): void {
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    if (event.target !== this.grid || modified || this.order.length === 0) {
      return;
    }
    const last = this.order.length - 1;
    const at = this.active === null ? -1 : this.order.place(this.active);
    const places: Readonly<Record<string, number>> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + this.scroll.page,
      PageUp: at - this.scroll.page,
      Home: 0,
      End: last,
      Enter: at
    };
    const place = places[event.key];
    if (place !== undefined) {
      this.store.select(this.order.row(Math.min(Math.max(place, 0), last)));
    } else if (event.key === 'Escape') {
      this.store.select(null);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
