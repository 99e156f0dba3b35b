/** Lists that keep their rows between updates, so that only texts change ten times a second. */

import { siteColour } from '../colours.js';
import { h, setText } from '../dom/elements.js';

/** The content of a row. */
export interface Row {
  readonly title: string;
  readonly detail: string;
  readonly colour?: number; // of its site; absent: none
  readonly alert: boolean; // `detail` shows this by a sign too
}

/** A list that shows at most `most` rows. */
export class Rows {
  readonly node: HTMLElement;
  private readonly rows: RowNode[] = [];
  private readonly list = h('ul', { role: 'list' });
  private readonly more = h('p', { class: 'jaxcb-muted', hidden: true });

  constructor(
    className: string,
    label: string,
    private readonly most: number
  ) {
    this.list.setAttribute('aria-label', label);
    this.node = h('div', { class: className, hidden: true }, this.list, this.more);
  }

  update(rows: readonly Row[]): void {
    const shown = rows.slice(0, this.most);
    shown.forEach((row, place) => this.row(place).update(row));
    for (const left of this.rows.splice(shown.length)) {
      left.node.remove();
    }
    const more = rows.length - shown.length;
    this.node.hidden = rows.length === 0;
    this.more.hidden = more === 0;
    setText(this.more, more ? `and ${more} more` : '');
  }

  private row(place: number): RowNode {
    let row = this.rows[place];
    if (!row) {
      row = new RowNode();
      this.rows.push(row);
      this.list.append(row.node);
    }
    return row;
  }
}

class RowNode {
  private readonly title = h('span', { class: 'jaxcb-live-title' });
  private readonly detail = h('span', { class: 'jaxcb-live-detail' });
  private readonly swatch = h('span', { class: 'jaxcb-swatch', 'aria-hidden': 'true' });
  readonly node = h('li', { class: 'jaxcb-live-row' }, this.swatch, this.title, this.detail);

  update({ title, detail, colour, alert }: Row): void {
    if (colour !== undefined) {
      this.swatch.style.setProperty('--jaxcb-own', `var(${siteColour(colour)})`);
    }
    setText(this.title, title);
    setText(this.detail, detail);
    this.node.classList.toggle('jaxcb-live-alert', alert);
  }
}
