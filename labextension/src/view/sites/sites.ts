/** The sites of a recording in program order, each with a row and details. */

import { button, h, set } from '../dom/elements.js';
import { coloursOf } from '../colours.js';
import { siteDetails, type Unfolded } from './details.js';
import { siteRow, type SiteActions } from './row.js';
import type { Facts } from '../data/schema.js';

const AT_ONCE = 100; // sites that are listed at a time
const FEW_DIAGRAMS = 4; // diagrams that are expanded initially

export class SiteList {
  readonly node = h('div', { class: 'jaxcb-sites' });
  private readonly list = h('ol', { class: 'jaxcb-sites-list', role: 'list' });
  private readonly more = h('button', { class: 'jaxcb-sites-more', type: 'button' });
  private readonly unfolded: Unfolded;
  private readonly colours: readonly number[];

  constructor(
    private readonly facts: Facts,
    private readonly actions: SiteActions
  ) {
    const batched = facts.sites.filter(site => site.shapes.some(variant => variant.levels.length));
    this.unfolded = { diagrams: batched.length <= FEW_DIAGRAMS };
    this.colours = coloursOf(facts.sites);
    this.more.addEventListener('click', this.listMore);
    this.node.append(this.list, this.more);
    this.listMore();
  }

  dispose(): void {
    this.more.removeEventListener('click', this.listMore);
    this.node.remove();
  }

  private readonly listMore = (): void => {
    const from = this.list.childElementCount;
    const sites = this.facts.sites.slice(from, from + AT_ONCE);
    this.list.append(...sites.map((_, place) => this.item(from + place)));
    const left = this.facts.sites.length - from - sites.length;
    this.more.hidden = left === 0;
    this.more.textContent = `show ${Math.min(left, AT_ONCE)} more of ${left} sites`;
    if (from > 0) {
      // The button has moved or is gone, so the focus continues at the first new site.
      const first = this.list.children[from] as HTMLElement;
      set(first, { tabindex: -1 });
      first.focus();
    }
  };

  private item(place: number): HTMLElement {
    const site = this.facts.sites[place]!;
    return h(
      'li',
      { class: 'jaxcb-site' },
      siteRow(this.facts, place, this.colours[place]!, this.actions),
      h(
        'div',
        { class: 'jaxcb-site-below' },
        h('div', { class: 'jaxcb-site-details' }, ...siteDetails(site, this.unfolded)),
        this.callsButton(place)
      )
    );
  }

  private callsButton(place: number): HTMLElement | null {
    const { filter } = this.actions;
    const site = this.facts.sites[place]!;
    if (!filter || !site.calls) {
      return null;
    }
    const label = `show calls: ${site.function}, ${site.where}`;
    const attributes = { class: 'jaxcb-link jaxcb-site-show', 'aria-label': label };
    return button(attributes, () => filter(place), 'show calls');
  }
}
