/** The row elements of the table: only a few, which are reused. */

import { h } from '../../dom/elements.js';
import { hasFailed } from '../../data/labels.js';
import type { Store } from '../../data/store.js';
import { marked } from '../../dom/not-finite.js';
import { siteName } from '../../dom/site-name.js';
import type { Column } from './columns.js';
import type { Order } from './order.js';
import { ROW, type Scroll } from './scroll.js';
import { siteColour } from '../../colours.js';

const SPARE = 2; // rows above and below the visible ones, because scroll events come late

// Columns whose words have parts; others are plain text.
const PARTS: Record<string, (text: string) => (string | HTMLElement)[]> = { sample: marked, site: siteName };

export class Rows {
  readonly node = h('div', { class: 'jaxcb-table-body', role: 'rowgroup' });
  private readonly used: HTMLElement[] = [];

  constructor(
    private readonly store: Store,
    private readonly order: Order,
    private readonly scroll: Scroll,
    private readonly id: string
  ) {}

  /** The row of an event's target; null: none. */
  rowOf(event: Event): number | null {
    const element = event.target instanceof Element ? event.target.closest('[data-row]') : null;
    return element ? Number(element.getAttribute('data-row')) : null;
  }

  /** The id of a row's element; null: it is not in the document. */
  idOf(row: number): string | null {
    const id = `${this.id}-${row}`;
    return this.used.some(each => each.id === id && !each.hidden) ? id : null;
  }

  /** Forgets the elements of rows: other columns are shown now. */
  clear(): void {
    this.used.splice(0).forEach(element => element.remove());
  }

  draw(columns: readonly Column[], active: number | null): void {
    const [first, last] = this.scroll.visible;
    const from = Math.max(first - SPARE, 0);
    const to = Math.min(last + SPARE, this.order.length);
    this.node.style.height = `${this.scroll.room}px`;
    while (this.used.length < to - from) {
      this.used.push(this.node.appendChild(h('div', { class: 'jaxcb-table-row', role: 'row' })));
    }
    this.used.forEach((element, nth) => {
      element.hidden = from + nth >= to;
      if (!element.hidden) {
        this.fill(element, from + nth, columns, active);
      }
    });
  }

  private fill(
    element: HTMLElement,
    place: number,
    columns: readonly Column[],
    active: number | null
  ): void {
    const row = this.order.row(place);
    element.id = `${this.id}-${row}`;
    element.style.top = `${this.scroll.y(place)}px`;
    element.style.height = `${ROW}px`;
    element.setAttribute('data-row', String(row));
    element.setAttribute('aria-rowindex', String(place + 2));
    element.setAttribute('aria-selected', String(row === this.store.selected));
    element.classList.toggle('jaxcb-table-odd', place % 2 === 1);
    element.classList.toggle('jaxcb-table-active', row === active);
    element.classList.toggle('jaxcb-table-failed', hasFailed(this.store, row));
    while (element.children.length < columns.length) {
      element.append(cell(columns[element.children.length]!, element.children.length));
    }
    columns.forEach((column, nth) => this.write(element.children[nth]!, column, row));
  }

  private write(cell: Element, column: Column, row: number): void {
    const text = column.text(row);
    const words = cell.lastElementChild!;
    if (words.textContent !== text) {
      words.replaceChildren(...(PARTS[column.name]?.(text) ?? [text]));
      cell.setAttribute('title', text);
    }
    if (column.name === 'site') {
      const site = this.store.site(row);
      const colour = site === null ? '--jaxcb-site-mixed' : siteColour(this.store.colour(site));
      (cell.firstElementChild as HTMLElement).style.background = `var(${colour})`;
    }
  }
}

function cell({ name }: Column, nth: number): HTMLElement {
  const words = h('span', { class: `jaxcb-table-words${name === 'site' ? ' jaxcb-site-name' : ''}` });
  const swatch = name === 'site' && h('span', { class: 'jaxcb-table-swatch' });
  const attributes = { role: 'gridcell', class: `jaxcb-table-${name}`, 'aria-colindex': nth + 1 };
  return h('div', attributes, swatch, words);
}
