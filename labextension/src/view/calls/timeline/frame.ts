/** The elements of a timeline, around its canvas. */

import { durationColour, RAMP } from '../../colours.js';
import type { Layout } from '../../data/store.js';
import { timeWords } from '../../data/words.js';
import { button, h } from '../../dom/elements.js';
import { tooltip } from '../../dom/tooltip.js';
import { rampEdges } from './picture/colouring.js';
import { AXIS, BAND, MOST_BANDS } from './picture/geometry.js';

let frames = 0;

export type ColourBy = Layout['colourBy'];

/** The actions of the buttons. */
export interface Buttons {
  zoomIn(): void;
  zoomOut(): void;
  all(): void;
  colour(by: ColourBy): void;
}

export class Frame {
  readonly node: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly scroller: HTMLElement; // scrolls the bands
  readonly selected = h('p', { class: 'jaxcb-timeline-selected', role: 'status' });
  readonly details = tooltip();
  private readonly room = h('div', { class: 'jaxcb-timeline-room' });
  private readonly ramp = h('span', { class: 'jaxcb-timeline-ramp', hidden: true });
  private readonly colouring: Readonly<Record<ColourBy, HTMLElement>>;
  private readonly hint: HTMLElement;
  private readonly question: HTMLElement;
  private ramped = '';

  constructor(buttons: Buttons) {
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
    this.question = titled('?', 'Keys of the timeline', () => this.help());
    this.question.setAttribute('aria-controls', id);
    this.colouring = {
      site: titled('site', 'Color by site', () => buttons.colour('site')),
      duration: titled('duration', 'Color by duration', () => buttons.colour('duration'))
    };
    const head = h('div', { class: 'jaxcb-timeline-head' }, this.switch(), this.zoom(buttons));
    const foot = h('div', { class: 'jaxcb-timeline-foot' }, this.hint, this.selected);
    this.node = h('div', { class: 'jaxcb-timeline' }, head, this.scroller, foot, this.details);
    this.question.setAttribute('aria-expanded', 'false');
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

  /** Shows or hides the keys; while the canvas has the keyboard's focus, they are shown anyway. */
  help(): void {
    const shown = this.hint.classList.toggle('jaxcb-timeline-hint-shown');
    this.question.setAttribute('aria-expanded', String(shown));
  }

  /** Shows what the colors mean. */
  colours(by: ColourBy, shortest: number, longest: number): void {
    for (const [name, button] of Object.entries(this.colouring)) {
      button.setAttribute('aria-pressed', String(name === by));
    }
    this.ramp.hidden = by === 'site';
    const key = `${shortest} ${longest}`;
    if (by === 'duration' && key !== this.ramped) {
      this.ramped = key;
      const edges = rampEdges(shortest, longest).map(timeWords);
      const swatches = Array.from({ length: RAMP }, (_, place) => {
        const swatch = h('span', { title: `${edges[place]} – ${edges[place + 1]}` });
        swatch.style.background = `var(${durationColour(place)})`;
        return swatch;
      });
      this.ramp.replaceChildren(edges[0]!, h('span', {}, ...swatches), edges[RAMP]!);
    }
  }

  private switch(): HTMLElement {
    const { site, duration } = this.colouring;
    const both = h('span', { class: 'jaxcb-timeline-switch' }, site, duration);
    const attributes = { class: 'jaxcb-timeline-colours', role: 'group', 'aria-label': 'Color' };
    return h('div', attributes, 'Color', both, this.ramp);
  }

  private zoom(buttons: Buttons): HTMLElement {
    return h(
      'div',
      { class: 'jaxcb-timeline-buttons' },
      titled('−', 'Zoom out', () => buttons.zoomOut()),
      titled('+', 'Zoom in', () => buttons.zoomIn()),
      titled('All', 'All: show the whole time range', () => buttons.all()),
      this.question
    );
  }
}

function titled(sign: string, title: string, act: () => void): HTMLElement {
  return button({ title, 'aria-label': title }, act, sign);
}

function hintOf(id: string): HTMLElement {
  const keys: readonly (readonly [string, string])[] = [
    ['Ctrl+wheel + −', 'zoom'],
    ['drag ← →', 'pan'],
    ['Shift+drag', 'zoom to a range'],
    ['0', 'all'],
    ['N P', 'next, previous call'],
    ['Enter', 'zoom to the call']
  ];
  const hint = h('p', { class: 'jaxcb-timeline-hint', id });
  for (const [key, meaning] of keys) {
    hint.append(h('span', {}, h('kbd', {}, key), ` ${meaning}`), ' ');
  }
  return hint;
}
