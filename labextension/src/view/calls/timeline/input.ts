/** Translates pointer, wheel and key events on the timeline's canvas into actions. */

import { onAxis } from './tracks/hit.js';

/** The actions of a user; `x` and `y` are pixels of the canvas. */
export interface Actions {
  hover(x: number, y: number, event: PointerEvent): void;
  leave(): void;
  click(x: number, y: number): void;
  drag(pixels: number, down: number): void;
  markFrom(x: number): void; // a range begins
  markTo(x: number, done: boolean): void;
  zoomAt(factor: number, x: number): void;
  all(): void;
  key(key: string): boolean; // whether the key is used
}

const STILL = 4; // pixels that a click may move
const LINE = 16; // pixels per wheel line
const WHEEL = 0.0022;

/** Adds the listeners; they are removed with the canvas. */
export function listen(canvas: HTMLCanvasElement, actions: Actions): void {
  const gesture = new Gesture(canvas, actions);
  canvas.addEventListener('pointerdown', event => gesture.down(event));
  canvas.addEventListener('pointermove', event => gesture.move(event));
  canvas.addEventListener('pointerup', event => gesture.up(event));
  canvas.addEventListener('pointercancel', () => gesture.cancel());
  canvas.addEventListener('pointerleave', () => actions.leave());
  canvas.addEventListener('blur', () => actions.leave());
  canvas.addEventListener('dblclick', () => actions.all());
  canvas.addEventListener('wheel', event => wheel(canvas, actions, event), { passive: false });
  canvas.addEventListener('keydown', event => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (plain && actions.key(event.key)) {
      event.preventDefault();
      event.stopPropagation();
    }
  });
}

/** The wheel scrolls the page unless Ctrl is pressed or the timeline has the focus. */
function wheel(canvas: HTMLCanvasElement, actions: Actions, event: WheelEvent): void {
  const unit = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : LINE;
  const meant = event.ctrlKey || event.metaKey || event.altKey;
  if (!meant && document.activeElement !== canvas) {
    return;
  }
  event.preventDefault();
  if (!meant && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    actions.drag(-event.deltaX * unit, 0);
  } else {
    actions.zoomAt(Math.exp(event.deltaY * unit * WHEEL), event.offsetX);
  }
}

class Gesture {
  private started: { x: number; y: number; range: boolean } | null = null;
  private last = { x: 0, y: 0 };
  private moved = false;

  constructor(private readonly canvas: HTMLCanvasElement, private readonly actions: Actions) {}

  down(event: PointerEvent): void {
    if (event.button !== 0) {
      return;
    }
    const { offsetX: x, offsetY: y } = event;
    this.started = { x, y, range: event.shiftKey || onAxis(y) };
    this.last = { x, y };
    this.moved = false;
    this.canvas.setPointerCapture?.(event.pointerId);
  }

  move(event: PointerEvent): void {
    const { offsetX: x, offsetY: y } = event;
    if (!this.started) {
      this.actions.hover(x, y, event);
      return;
    }
    const away = Math.hypot(x - this.started.x, y - this.started.y);
    if (!this.moved && away < STILL) {
      return;
    }
    if (!this.moved) {
      this.moved = true;
      this.actions.leave();
      if (this.started.range) {
        this.actions.markFrom(this.started.x);
      }
    }
    if (this.started.range) {
      this.actions.markTo(x, false);
    } else {
      this.actions.drag(x - this.last.x, this.last.y - y);
    }
    this.last = { x, y };
  }

  up(event: PointerEvent): void {
    const started = this.started;
    this.started = null;
    if (!started) {
      return;
    }
    if (!this.moved) {
      this.actions.click(started.x, started.y);
    } else if (started.range) {
      this.actions.markTo(event.offsetX, true);
    }
  }

  cancel(): void {
    this.started = null;
    this.actions.leave();
  }
}
