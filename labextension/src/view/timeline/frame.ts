/** The elements of a timeline, around its canvas. */

import { h } from '../dom.js';
import type { Store } from '../data/store.js';
import { AXIS, BAND, MOST_BANDS } from './picture/geometry.js';
import { siteColour } from '../colours.js';

const MOST_SITES = 8;
let frames = 0;

/** The actions of the buttons. */
export interface Buttons {
  zoomIn(): void;
  zoomOut(): void;
  all(): void;
}

export class Frame {
  readonly node: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly scroller: HTMLElement; // scrolls the bands
  readonly selected = h('p', { class: 'jaxcb-timeline-selected', role: 'status' });
  readonly details = h('div', { class: 'jaxcb-timeline-details', role: 'tooltip', hidden: true });
  private readonly room = h('div', { class: 'jaxcb-timeline-room' });
  private readonly legend = h('div', {
    class: 'jaxcb-timeline-legend',
    role: 'group',
    'aria-label': 'Show the calls of one site'
  });
  private readonly hint: HTMLElement;
  private legendOf = '';

  constructor(private readonly store: Store, buttons: Buttons) {
    const id = `jaxcb-timeline-hint-${++frames}`;
    this.hint = hintOf(id);
    this.canvas = h('canvas', {
      class: 'jaxcb-timeline-canvas',
      role: 'application',
      tabindex: 0,
      'aria-describedby': id,
      'aria-roledescription': 'timeline'
    });
    this.scroller = h('div', { class: 'jaxcb-timeline-scroller' }, this.canvas, this.room);
    const zoom = h('div', { class: 'jaxcb-timeline-buttons' });
    zoom.append(
      button('−', 'Zoom out', () => buttons.zoomOut()),
      button('+', 'Zoom in', () => buttons.zoomIn()),
      button('All', 'Show the whole time range', () => buttons.all())
    );
    const head = h('div', { class: 'jaxcb-timeline-head' }, this.legend, zoom);
    const foot = h('div', { class: 'jaxcb-timeline-foot' }, this.selected, this.hint);
    this.node = h('div', { class: 'jaxcb-timeline' }, head, this.scroller, foot, this.details);
  }

  /** Sets the height for a number of bands, of which only a few are visible at once. */
  fit(bands: number): void {
    const visible = AXIS + BAND * Math.min(Math.max(bands, 1), MOST_BANDS) + 2;
    this.canvas.style.height = `${visible}px`;
    this.scroller.style.maxHeight = `${visible}px`;
    this.room.style.height = `${BAND * Math.max(bands - MOST_BANDS, 0)}px`;
  }

  /** Sets the text alternative of the picture for screen readers. */
  describe(words: string): void {
    if (this.canvas.getAttribute('aria-label') !== words) {
      this.canvas.setAttribute('aria-label', words);
    }
  }

  /** Shows the selected call as text; empty: none. */
  say(words: string): void {
    this.selected.textContent = words;
  }

  /** Lists the sites with their colors; a click filters by site. */
  list(): void {
    const { labels, filter } = this.store;
    const key = JSON.stringify([filter.site, labels.sites.slice(0, MOST_SITES + 1)]);
    if (key === this.legendOf) {
      return;
    }
    this.legendOf = key;
    const focused = [...this.legend.children].indexOf(document.activeElement!);
    const sites = labels.sites.slice(0, MOST_SITES);
    this.legend.replaceChildren(...sites.map((site, place) => this.item(site, place)));
    const more = labels.sites.length - sites.length;
    if (more > 0) {
      this.legend.append(h('span', { class: 'jaxcb-timeline-more' }, `and ${more} more`));
    }
    (this.legend.children[focused] as HTMLElement | undefined)?.focus();
  }

  private item(site: string, place: number): HTMLElement {
    const { filter } = this.store;
    const swatch = h('span', { class: 'jaxcb-timeline-swatch', 'aria-hidden': 'true' });
    swatch.style.background = `var(${siteColour(this.store.colour(place))})`;
    const label = h('span', { class: 'jaxcb-timeline-site' }, site);
    const pressed = filter.site === place;
    const item = h(
      'button',
      { type: 'button', 'aria-pressed': String(pressed), title: site },
      swatch,
      label
    );
    item.addEventListener('click', () => {
      this.store.narrow({ ...this.store.filter, site: pressed ? null : place });
    });
    return item;
  }
}

function button(sign: string, title: string, act: () => void): HTMLElement {
  const node = h('button', { type: 'button', title, 'aria-label': title }, sign);
  node.addEventListener('click', act);
  return node;
}

function hintOf(id: string): HTMLElement {
  const keys: readonly (readonly [string, string])[] = [
    ['Ctrl+wheel', 'zoom (after a click: wheel)'],
    ['drag', 'pan'],
    ['Shift+drag', 'zoom to a range'],
    ['+ − ← → 0', 'by keyboard'],
    ['N P', 'next, previous call']
  ];
  const hint = h('p', { class: 'jaxcb-timeline-hint', id });
  for (const [key, meaning] of keys) {
    hint.append(h('span', {}, h('kbd', {}, key), ` ${meaning}`), ' ');
  }
  return hint;
}
