/** Draws the marks: the selected call, the call below the pointer, a marked range. */

import type { Store } from '../../../data/store.js';
import { AXIS, type Geometry } from './geometry.js';
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
  const top = at.top(band) + at.barTop(depth) - 1;
  for (const [colour, wide] of [[theme.back, selected ? 5 : 3], [theme.mark, selected ? 2 : 1]]) {
    pen.strokeStyle = String(colour);
    pen.lineWidth = Number(wide);
    pen.strokeRect(left, top, width, at.barHeight(depth) + 2);
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

/** A marked range of time: darker on the axis than over the calls, which stay readable. */
export function paintRange(
  pen: CanvasRenderingContext2D,
  at: Geometry,
  theme: Theme,
  [from, to]: readonly [number, number]
): void {
  const left = Math.max(at.x(from), at.gutter);
  const right = Math.min(at.x(to), at.width);
  if (right < left) {
    return;
  }
  pen.fillStyle = theme.mark;
  for (const [alpha, height] of [[0.2, AXIS], [0.08, at.height]] as const) {
    pen.globalAlpha = alpha;
    pen.fillRect(left, 0, right - left, height);
  }
  pen.globalAlpha = 1;
  for (const edge of [at.x(from), at.x(to)].filter(each => each >= left && each <= right)) {
    pen.fillRect(Math.round(edge), 0, 1, at.height);
  }
}
