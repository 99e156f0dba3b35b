/** The column titles of the table; each is a button that sorts by the column. */

import { button, h } from '../../dom/elements.js';
import type { Column } from './columns.js';

const SIGNS = { ascending: '▲', descending: '▼', none: '' } as const;

export class Head {
  readonly node = h('div', { class: 'jaxcb-table-head', role: 'rowgroup' });
  private readonly row = h('div', {
    class: 'jaxcb-table-row',
    role: 'row',
    'aria-rowindex': 1
  });

  constructor(private readonly sort: (column: Column) => void) {
    this.node.append(this.row);
  }

  /** Replaces the titles: other columns are shown now. */
  show(columns: readonly Column[]): void {
    this.row.replaceChildren();
    columns.forEach(column => this.add(column));
  }

  draw(columns: readonly Column[], by: Column | null, descending: boolean): void {
    columns.forEach((column, nth) => {
      const sorting = column !== by ? 'none' : descending ? 'descending' : 'ascending';
      const title = this.row.children[nth]!;
      title.setAttribute('aria-sort', sorting);
      title.querySelector('.jaxcb-table-sign')!.textContent = SIGNS[sorting];
    });
  }

  private add(column: Column): void {
    const sign = h('span', { class: 'jaxcb-table-sign', 'aria-hidden': 'true' });
    const attributes = { title: `Sort by ${column.name}` };
    const sort = button(attributes, () => this.sort(column), column.title, sign);
    const title = { role: 'columnheader', class: `jaxcb-table-${column.name}` };
    this.row.append(h('div', { ...title, 'aria-colindex': this.row.children.length + 1 }, sort));
  }
}
