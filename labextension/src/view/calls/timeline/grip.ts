/** The edge below the timeline, which the user drags to make its lanes taller. */

import { h } from '../../dom/elements.js';
import { BAND, type Heights } from './picture/geometry.js';

export class Grip {
  readonly node = h('div', {
    class: 'jaxcb-timeline-grip',
    role: 'separator',
    tabindex: 0,
    'aria-orientation': 'horizontal',
    'aria-label': 'Height of the timeline',
    title: 'Drag for taller lanes; double click for their first height'
  });
  private heights: Heights = { band: 0, shown: 0, least: 0, most: 0 };
  private dragged: { readonly y: number; readonly shown: number } | null = null;

  /** Args: resize: sets the height of the visible lanes, in pixels; null: the first height. */
  constructor(private readonly resize: (height: number | null) => void) {
    const { node } = this;
    node.addEventListener('pointerdown', event => this.down(event));
    node.addEventListener('pointermove', event => this.move(event));
    for (const type of ['pointerup', 'pointercancel'] as const) {
      node.addEventListener(type, () => (this.dragged = null));
    }
    node.addEventListener('dblclick', () => resize(null));
    node.addEventListener('keydown', event => this.pressed(event));
  }

  /** Shows the heights of the timeline. */
  fit(heights: Heights): void {
    this.heights = heights;
    const { least, most, shown } = heights;
    for (const [name, value] of Object.entries({ min: least, max: most, now: shown })) {
      this.node.setAttribute(`aria-value${name}`, String(value));
    }
    this.node.setAttribute('aria-valuetext', `${shown} pixels, ${heights.band} each lane`);
  }

  private down(event: PointerEvent): void {
    if (event.button === 0) {
      this.dragged = { y: event.clientY, shown: this.heights.shown };
      this.node.setPointerCapture?.(event.pointerId);
    }
  }

  private move(event: PointerEvent): void {
    if (this.dragged) {
      this.resize(this.dragged.shown + event.clientY - this.dragged.y);
    }
  }

  private pressed(event: KeyboardEvent): void {
    const { least, most, shown } = this.heights;
    const keys = { ArrowUp: shown - BAND, ArrowDown: shown + BAND, Home: least, End: most };
    const wanted = keys[event.key as keyof typeof keys];
    if (event.key in keys && !event.ctrlKey && !event.metaKey && !event.altKey) {
      this.resize(wanted);
      event.preventDefault();
      event.stopPropagation();
    }
  }
}
