/** A table with a row for every host call, of which only the visible ones are in the document. */

import { siteColour } from '../../colours.js';
import { hasFailed } from '../../data/labels.js';
import { type Change, EVERYTHING, type Store } from '../../data/store.js';
import { button, h, set } from '../../dom/elements.js';
import { marked } from '../../dom/not-finite.js';
import { siteName } from '../../dom/site-name.js';
import type { Figures } from '../distribution/figures.js';
import { onKeys } from '../input.js';
import { watchLook } from '../timeline/canvas.js';
import { type Column, columnsOf, fitting, leastWidth } from './columns.js';
import { Filters } from './filters.js';
import { Order } from './order.js';
import { ROW, Scroll } from './scroll.js';

const HEAD = 26;
const MOST_ROWS = 11; // visible at once
const BORDER = 2;
const SPARE = 2; // rows above and below the visible ones, because scroll events come late
const SIGNS = { ascending: '▲', descending: '▼', none: '' } as const;
// Columns whose words have parts; others are plain text.
const PARTS: Record<string, (text: string) => (string | HTMLElement)[]> = {
  sample: marked, site: siteName
};
let tables = 0;

export class CallTable {
  readonly node: HTMLElement;
  readonly filters: Filters;
  private readonly id = `jaxcb-table-${++tables}`;
  private readonly titles = h('div', { class: 'jaxcb-table-row', role: 'row', 'aria-rowindex': 1 });
  private readonly body = h('div', { class: 'jaxcb-table-body', role: 'rowgroup' });
  private readonly grid = h('div',
    { class: 'jaxcb-table-grid', role: 'grid', tabindex: 0, 'aria-label': 'Host calls' },
    h('div', { class: 'jaxcb-table-head', role: 'rowgroup' }, this.titles),
    this.body
  );
  private readonly empty: HTMLElement;
  private readonly scroll = new Scroll();
  private readonly order: Order;
  private readonly columns: readonly Column[];
  private shown: readonly Column[] = []; // those in which rows differ
  private active: number | null = null; // the row that keys move from
  private frameAsked = 0;
  private readonly forget: (() => void)[];

  constructor(private readonly store: Store, figures: Figures) {
    const { sort } = store.layout;
    this.columns = columnsOf(store);
    this.order = new Order(store);
    this.order.column = this.columns.find(({ name }) => name === sort?.column) ?? null;
    this.order.descending = sort?.descending ?? false;
    this.order.rebuild();
    this.filters = new Filters(store, figures);
    const all = button({}, () => store.narrow(EVERYTHING), 'Show all calls');
    this.empty = h('p', { class: 'jaxcb-table-empty' }, 'No matching calls. ', all);
    this.node = h('div', { class: 'jaxcb-table' }, this.grid, this.empty);
    this.grid.addEventListener('scroll', () => {
      this.measure();
      this.scroll.scrolled(this.grid.scrollTop);
      this.draw();
    });
    this.body.addEventListener('click', ({ target }) => {
      const row = (target as Element).closest('[data-row]')?.getAttribute('data-row');
      if (row && !document.getSelection()?.toString()) { // a click may end a text selection
        store.select(Number(row));
        this.grid.focus({ preventScroll: true });
      }
    });
    onKeys(this.grid, event => event.target === this.grid && this.key(event.key));
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

  private changed(change: Change): void {
    if (change === 'calls') {
      this.frameAsked ||= requestAnimationFrame(() => {
        this.frameAsked = 0;
        this.order.grow();
        this.resize();
      });
    } else if (change === 'selected') {
      this.follow();
    } else {
      if (change === 'labels') {
        this.filters.relabel();
      }
      this.reorder();
      this.follow();
    }
  }

  private sort(column: Column): void {
    const { order } = this;
    order.descending = order.column === column && !order.descending;
    order.column = column;
    this.store.layout.sort = { column: column.name, descending: order.descending };
    this.reorder();
  }

  private reorder(): void {
    this.order.rebuild();
    this.grid.scrollTop = 0;
    this.measure();
    this.scroll.scrolled(0);
    this.resize();
  }

  /** Handles a change of the selection, possibly in another view. */
  private follow(): void {
    const { selected } = this.store;
    this.active = selected ?? this.active;
    const place = selected === null ? -1 : this.order.place(selected);
    this.measure();
    const bar = place < 0 ? null : this.scroll.reveal(place);
    if (bar !== null) {
      this.grid.scrollTop = bar;
    }
    this.draw();
  }

  private measure(): void {
    const { clientHeight } = this.grid;
    const height = clientHeight > HEAD ? clientHeight - HEAD : MOST_ROWS * ROW;
    this.scroll.fit(this.order.length, height);
  }

  /** Handles a change of the rows or of the width. */
  private resize(): void {
    const { grid, store, order: { length } } = this;
    this.showColumns();
    const visible = Math.min(Math.max(length, 1), MOST_ROWS);
    grid.style.setProperty('--jaxcb-table-height', `${HEAD + ROW * visible + BORDER}px`);
    grid.setAttribute('aria-rowcount', String(length + 1));
    grid.hidden = length === 0;
    this.empty.hidden = length > 0 || store.calls.length === 0;
    this.filters.sync(length);
    this.measure();
    this.draw();
  }

  /** Shows the columns in which rows differ, without those that there is no room for. */
  private showColumns(): void {
    const { columns, grid } = this;
    const shown = fitting(columns.filter(each => each.differs?.() ?? true), grid.clientWidth);
    if (String(shown.map(each => each.name)) === String(this.shown.map(each => each.name))) {
      return;
    }
    this.shown = shown;
    const widths = shown.map(({ pixels, share }) =>
      share ? `minmax(${pixels}px, ${share}fr)` : `${pixels}px`
    );
    grid.style.setProperty('--jaxcb-table-columns', widths.join(' '));
    grid.style.setProperty('--jaxcb-table-width', `${leastWidth(shown)}px`);
    grid.setAttribute('aria-colcount', String(shown.length));
    this.body.replaceChildren();
    this.titles.replaceChildren(...shown.map((column, nth) => {
      const sign = h('span', { class: 'jaxcb-table-sign', 'aria-hidden': 'true' });
      const act = (): void => this.sort(column);
      const sort = button({ title: `Sort by ${column.name}` }, act, column.title, sign);
      return h('div', { role: 'columnheader', ...cellOf(column, nth) }, sort);
    }));
  }

  private draw(): void {
    const { active, body, order, scroll, shown, titles } = this;
    shown.forEach((column, nth) => {
      const isSorted = column === order.column;
      const sorting = isSorted ? (order.descending ? 'descending' : 'ascending') : 'none';
      titles.children[nth]!.setAttribute('aria-sort', sorting);
      titles.children[nth]!.querySelector('.jaxcb-table-sign')!.textContent = SIGNS[sorting];
    });
    const [first, last] = scroll.visible;
    const from = Math.max(first - SPARE, 0);
    const to = Math.min(last + SPARE, order.length);
    body.style.height = `${scroll.room}px`;
    while (body.children.length < to - from) {
      body.append(this.emptyRow());
    }
    this.grid.removeAttribute('aria-activedescendant');
    ([...body.children] as HTMLElement[]).forEach((element, nth) => {
      element.hidden = from + nth >= to;
      if (!element.hidden) {
        this.fill(element, from + nth);
        if (order.row(from + nth) === active) {
          this.grid.setAttribute('aria-activedescendant', element.id);
        }
      }
    });
  }

  private emptyRow(): HTMLElement {
    const cells = this.shown.map((column, nth) => {
      const isSite = column.name === 'site';
      const css = `jaxcb-table-words${isSite ? ' jaxcb-site-name' : ''}`;
      const swatch = isSite && h('span', { class: 'jaxcb-swatch' });
      const cell = { role: 'gridcell', ...cellOf(column, nth) };
      return h('div', cell, swatch, h('span', { class: css }));
    });
    return h('div', { class: 'jaxcb-table-row', role: 'row' }, ...cells);
  }

  private fill(element: HTMLElement, place: number): void {
    const { active, order, scroll, shown, store } = this;
    const row = order.row(place);
    set(element, {
      id: `${this.id}-${row}`,
      'data-row': row,
      'aria-rowindex': place + 2,
      'aria-selected': String(row === store.selected)
    });
    element.style.top = `${scroll.y(place)}px`;
    element.style.height = `${ROW}px`;
    element.classList.toggle('jaxcb-table-odd', place % 2 === 1);
    element.classList.toggle('jaxcb-table-active', row === active);
    element.classList.toggle('jaxcb-table-failed', hasFailed(store, row));
    shown.forEach((column, nth) => {
      const cell = element.children[nth]!;
      const words = cell.lastElementChild!;
      const text = column.text(row);
      if (words.textContent !== text) {
        words.replaceChildren(...(PARTS[column.name]?.(text) ?? [text]));
        cell.setAttribute('title', text);
      }
      if (column.name === 'site') {
        const site = store.site(row);
        const colour = site === null ? '--jaxcb-site-mixed' : siteColour(store.colour(site));
        (cell.firstElementChild as HTMLElement).style.setProperty('--jaxcb-own', `var(${colour})`);
      }
    });
  }

  /** Handles a key; false: it has no meaning. */
  private key(key: string): boolean {
    const { active, order, scroll, store } = this;
    const last = order.length - 1;
    if (last < 0) {
      return false;
    }
    const at = active === null ? -1 : order.place(active);
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1, ArrowUp: -1, PageDown: scroll.page, PageUp: -scroll.page, Enter: 0
    };
    const place = { Home: 0, End: last }[key] ?? at + (steps[key] ?? NaN);
    if (key === 'Escape') {
      store.select(null);
    } else if (Number.isNaN(place)) {
      return false;
    } else {
      store.select(order.row(Math.min(Math.max(place, 0), last)));
    }
    return true;
  }
}

function cellOf({ name }: Column, nth: number): Record<string, string | number> {
  return { class: `jaxcb-table-${name}`, 'aria-colindex': nth + 1 };
}
