/** Draws the time axis, the grid below it, and the names of threads. */

import { AXIS, type Geometry } from './geometry.js';
import type { Theme } from './theme.js';
import { ticks } from './ticks.js';

const TICK_APART = 90;

/** Grid lines and, on every second band, a faint stripe. */
export function paintGround(pen: CanvasRenderingContext2D, at: Geometry, theme: Theme): void {
  pen.clearRect(0, 0, at.width, at.height);
  const [first, last] = at.visible;
  pen.fillStyle = theme.stripe;
  for (let band = first; band < last; band++) {
    if (band % 2 === 0) {
      pen.fillRect(0, at.top(band), at.width, at.band);
    }
  }
}

/** The axis covers the bands, which scroll below it. */
export function paintAxis(pen: CanvasRenderingContext2D, at: Geometry, theme: Theme): void {
  pen.clearRect(0, 0, at.width, AXIS);
  pen.font = `11px ${theme.font}`;
  pen.textBaseline = 'middle';
  pen.textAlign = 'left';
  const { from, to } = at.scale;
  let free = at.gutter;
  for (const { ns, label } of ticks(from, to, at.plot / TICK_APART)) {
    const x = Math.round(at.x(ns)) + 0.5;
    pen.fillStyle = theme.line;
    pen.fillRect(x - 0.5, AXIS - 5, 1, at.height - AXIS + 5);
    const width = pen.measureText(label).width;
    const left = Math.min(x + 4, at.width - width);
    if (left >= free) {
      pen.fillStyle = theme.muted;
      pen.fillText(label, left, AXIS / 2);
      free = left + width + 8;
    }
  }
  pen.fillStyle = theme.line;
  pen.fillRect(0, AXIS - 1, at.width, 1);
}

/** The name of each visible band, cut where it is too long. */
export function paintNames(
  pen: CanvasRenderingContext2D,
  at: Geometry,
  theme: Theme,
  name: (band: number) => string
): void {
  const [first, last] = at.visible;
  pen.font = `11px ${theme.font}`;
  pen.textBaseline = 'middle';
  pen.textAlign = 'left';
  pen.fillStyle = theme.text;
  for (let band = first; band < last; band++) {
    pen.fillText(cut(pen, name(band), at.gutter - 14), 6, at.top(band) + at.band / 2 + 1);
  }
  pen.fillStyle = theme.line;
  pen.fillRect(at.gutter - 1, 0, 1, at.height);
}

/** Cuts a text to `width`, with an ellipsis; empty if too little fits. */
export function cut(pen: CanvasRenderingContext2D, text: string, width: number): string {
  if (pen.measureText(text).width <= width) {
    return text;
  }
  let low = 0;
  let high = Math.min(text.length, 200);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= width) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low < 2 ? '' : `${text.slice(0, low)}…`;
}
