/** Draws an outline around the calls that one crossing made. */

import type { Track } from '../tracks/track.js';
import { walk } from '../tracks/spans.js';
import type { Drawing } from './bars.js';
import type { Geometry } from './geometry.js';

const LEAST = 6; // pixels; narrower crossings have no outline
const AROUND = 2; // pixels between a call and the outline
const FILL = 0.1;
const EDGE = 0.6;

/** The outlines of a track's crossings, which stand behind its calls and on those of outer tracks. */
export function paintCrossings({ pen, at, theme }: Drawing, track: Track, band: number): void {
  const isInner = track.depth > 0;
  const above = isInner ? AROUND - 1 : AROUND; // the outer call goes on above it
  const top = at.top(band) + at.barTop(track.depth) - above - 0.5;
  const height = at.barHeight(track.depth) + above + AROUND - 1;
  const all = extents(track, at);
  const stroke = (colour: string, width: number, alpha: number): void => {
    const inset = (width - 1) / 2;
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.globalAlpha = alpha;
    for (const [left, right] of all) {
      pen.strokeRect(left + inset, top + inset, right - left - 2 * inset, height - 2 * inset);
    }
  };
  pen.save();
  pen.beginPath();
  pen.rect(at.gutter - AROUND, 0, at.plot + 2 * AROUND, at.height);
  pen.clip();
  pen.fillStyle = theme.muted;
  pen.globalAlpha = FILL;
  all.forEach(([left, right]) => pen.fillRect(left, top, right - left, height));
  if (isInner) {
    stroke(theme.back, 2, 1); // the color of the outer call may be that of the outline
  }
  stroke(theme.muted, 1, isInner ? 1 : EDGE);
  pen.restore();
}

/** From which pixel to which the outlines are; they do not overlap. */
function extents(track: Track, at: Geometry): [left: number, right: number][] {
  const beyond = at.gutter; // of an edge that is not in the picture
  const found: [number, number][] = [];
  let free = -beyond; // the pixel after the last outline
  walk(track.crossings, at.scale, {
    bar: (_, left, right) => {
      if (right - left >= LEAST) {
        const x = Math.max(left - AROUND, free) + 0.5;
        free = Math.min(right + AROUND, at.plot + beyond);
        found.push([at.gutter + x, at.gutter + free - 0.5]);
      }
    },
    shade: () => undefined
  });
  return found;
}
