/** Lists that keep their rows between updates, so that only texts change ten times a second. */

import { siteColour } from '../colours.js';
import { h, resize, setText } from '../dom/elements.js';

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
    resize(this.list, this.rows, shown.length, () => new RowNode());
    shown.forEach((row, place) => this.rows[place]!.update(row));
    const more = rows.length - shown.length;
    this.node.hidden = rows.length === 0;
    this.more.hidden = more === 0;
    setText(this.more, more ? `and ${more} more` : '');
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
