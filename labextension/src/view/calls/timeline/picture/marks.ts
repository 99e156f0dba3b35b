/** Draws the marks: the selected call, the call below the pointer, a range. */

import type { Store } from '../../../data/store.js';
import { AXIS, barHeight, barTop, type Geometry } from './geometry.js';
import type { Theme } from './theme.js';

/** Where a call's row is drawn. */
export interface Spot {
  readonly row: number;
  readonly band: number;
  readonly depth: number;
}

/** An outline around a call; around the selected one also a mark on the time axis. */
export function paintSpot(
  pen: CanvasRenderingContext2D,
  at: Geometry,
  theme: Theme,
  { calls }: Store,
  { row, band, depth }: Spot,
  selected: boolean
): void {
  const start = at.x(calls.start(row));
  const end = at.x(calls.start(row) + calls.duration(row));
  if (end < at.gutter || start > at.width) {
    return;
  }
  const left = Math.max(start, at.gutter) - 1;
  const width = Math.max(Math.min(end, at.width) - left, 3);
  const top = at.top(band) + barTop(depth) - 1;
  for (const [colour, wide] of [[theme.back, selected ? 5 : 3], [theme.mark, selected ? 2 : 1]]) {
    pen.strokeStyle = String(colour);
    pen.lineWidth = Number(wide);
    pen.strokeRect(left, top, width, barHeight(depth) + 2);
  }
  if (selected) {
    paintPointer(pen, (Math.max(start, at.gutter) + Math.min(end, at.width)) / 2, theme);
  }
}

/** A triangle on the axis, over the selected call. */
function paintPointer(pen: CanvasRenderingContext2D, x: number, theme: Theme): void {
  pen.fillStyle = theme.mark;
  pen.beginPath();
  pen.moveTo(x - 5, AXIS - 8);
  pen.lineTo(x + 5, AXIS - 8);
  pen.lineTo(x, AXIS - 1);
  pen.fill();
}

/** A range that is being drawn, from one pixel to another. */
export function paintRange(
  pen: CanvasRenderingContext2D,
  at: Geometry,
  theme: Theme,
  [from, to]: readonly [number, number]
): void {
  pen.fillStyle = theme.mark;
  pen.globalAlpha = 0.18;
  pen.fillRect(Math.min(from, to), 0, Math.abs(to - from), at.height);
  pen.globalAlpha = 1;
  pen.fillRect(from, 0, 1, at.height);
  pen.fillRect(to, 0, 1, at.height);
}
