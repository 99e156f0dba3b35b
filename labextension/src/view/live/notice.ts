/** The notice that no host call of the running cell returns. */

import { button, h, setText } from '../dom/elements.js';
import type { Hang } from '../data/schema.js';
import { restartOf } from '../restart.js';

export class Notice {
  private readonly title = h('span', { role: 'alert' });
  private readonly restart = button({ hidden: true }, () => restartOf(this.node)?.(), 'Restart kernel…');
  private readonly summary = h('summary');
  private readonly text = h('p', { class: 'jaxcb-hang-text' });
  private readonly stacks = h('pre', { tabindex: 0, 'aria-label': 'stacks' });
  private readonly details = h(
    'details',
    {},
    this.summary,
    this.text,
    this.stacks
  );
  readonly node = h(
    'div',
    { class: 'jaxcb-hang', hidden: true },
    this.title,
    this.restart,
    this.details
  );

  /** Shows the notice; removes it if it has no title, because the cell goes on. */
  show({ title, text, stacks }: Hang): void {
    this.node.hidden = title === '';
    setText(this.title, title && `⚠ ${title}`);
    setText(this.summary, text ? 'why, and where each host call is' : 'where each host call is');
    setText(this.text, text);
    setText(this.stacks, stacks);
  }

  /** Offers the restart once it is possible: not before the notice is in a notebook. */
  offer(): void {
    if (this.restart.hidden && !this.node.hidden && this.node.isConnected) {
      this.restart.hidden = restartOf(this.node) === null;
    }
  }
}
