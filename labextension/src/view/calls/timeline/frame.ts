/** The elements of a timeline, around its canvas. */

import { durationColour, RAMP } from '../../colours.js';
import type { Layout } from '../../data/store.js';
import { timeWords } from '../../data/words.js';
import { button, h } from '../../dom/elements.js';
import { term } from '../../dom/term.js';
import { tooltip } from '../../dom/tooltip.js';
import { rampEdges } from './picture/colouring.js';
import { Grip } from './grip.js';
import { AXIS, heightsOf } from './picture/geometry.js';
import { type Range, RangeBox, type RangeFigures } from './range.js';

let frames = 0;

export type ColourBy = Layout['colourBy'];

/** The actions of the buttons. */
export interface Buttons {
  zoomIn(): void;
  zoomOut(): void;
  all(): void;
  colour(by: ColourBy): void;
  resize(height: number | null): void; // of the visible bands
  zoomToRange(): void;
  clearRange(): void;
}

export class Frame {
  readonly node: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly scroller: HTMLElement; // scrolls the bands
  readonly selected = h('p', { class: 'jaxcb-timeline-selected', role: 'status' });
  readonly details = tooltip();
  private readonly room = h('div', { class: 'jaxcb-timeline-room' });
  private readonly ramp = h('span', {
    class: 'jaxcb-timeline-ramp',
    hidden: true,
    title: 'From the shortest to the longest of the calls shown'
  });
  private readonly outlined = h(
    'span',
    { class: 'jaxcb-timeline-crossing', hidden: true },
    term('crossing', 'crossing')
  );
  private readonly colouring: Readonly<Record<ColourBy, HTMLElement>>;
  private readonly hint: HTMLElement;
  private readonly question: HTMLElement;
  private readonly grip: Grip;
  private readonly range: RangeBox;
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
    this.grip = new Grip(height => buttons.resize(height));
    this.range = new RangeBox(() => buttons.zoomToRange(), () => buttons.clearRange());
    const below = [this.range.node, this.hint, this.selected];
    const foot = h('div', { class: 'jaxcb-timeline-foot' }, ...below);
    const parts = [head, this.scroller, this.grip.node, foot, this.details];
    this.node = h('div', { class: 'jaxcb-timeline' }, ...parts);
    this.question.setAttribute('aria-expanded', 'false');
  }

  /** Sets the height for a number of bands, of which only some are visible at once. */
  fit(bands: number, wanted: number | null): void {
    const heights = heightsOf(bands, wanted);
    const visible = AXIS + heights.shown + 2;
    this.canvas.style.height = `${visible}px`;
    this.scroller.style.maxHeight = `${visible}px`;
    this.room.style.height = `${Math.max(heights.band * bands - heights.shown, 0)}px`;
    this.grip.fit(heights);
  }

  /** Shows the figures of a range; null: none is marked. */
  figures(range: Range | null, figures: RangeFigures | null, filtered: boolean): void {
    this.range.show(range, figures, filtered);
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

  /** Shows by what calls are colored. */
  colours(by: ColourBy): void {
    for (const [name, button] of Object.entries(this.colouring)) {
      button.setAttribute('aria-pressed', String(name === by));
    }
    this.ramp.hidden = by === 'site';
  }

  /** Shows which color is which duration, from the shortest of the calls shown to the longest. */
  durations(shortest: number, longest: number): void {
    const key = `${shortest} ${longest}`;
    if (key !== this.ramped) {
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

  /** Shows what the outlines mean, if there are any. */
  crossings(shown: boolean): void {
    this.outlined.hidden = !shown;
  }

  private switch(): HTMLElement {
    const { site, duration } = this.colouring;
    const both = h('span', { class: 'jaxcb-timeline-switch' }, site, duration);
    const attributes = { class: 'jaxcb-timeline-colours', role: 'group', 'aria-label': 'Color' };
    return h('div', attributes, 'Color', both, this.ramp, this.outlined);
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
    ['W S, Ctrl+wheel', 'zoom'],
    ['A D ← →, drag', 'pan'],
    ['↑ ↓', 'scroll'],
    ['Shift+drag, drag on the axis', 'mark a range'],
    ['M', 'mark what is shown'],
    ['F', 'zoom to the range or call'],
    ['0', 'all'],
    ['N P', 'next, previous call'],
    ['Enter', 'zoom to the call'],
    ['Esc', 'clear']
  ];
  const hint = h('p', { class: 'jaxcb-timeline-hint', id });
  for (const [key, meaning] of keys) {
    hint.append(h('span', {}, h('kbd', {}, key), ` ${meaning}`), ' ');
  }
  return hint;
}
