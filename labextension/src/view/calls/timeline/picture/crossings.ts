/** Draws an outline around the calls that one crossing made. */

import type { Track } from '../tracks/track.js';
import { walk } from '../tracks/spans.js';
import type { Drawing } from './bars.js';

const LEAST = 6; // pixels; narrower crossings have no outline
const AROUND = 2; // pixels between a call and the outline
const FILL = 0.1;
const EDGE = 0.6;

/** The outlines of a track's crossings, which stand behind its calls. */
export function paintCrossings({ pen, at, theme }: Drawing, track: Track, band: number): void {
  const top = at.top(band) + at.barTop(track.depth) - AROUND - 0.5;
  const height = at.barHeight(track.depth) + 2 * AROUND - 1;
  const beyond = at.gutter; // of an edge that is not in the picture
  let free = -beyond; // the pixel after the last outline
  pen.save();
  pen.beginPath();
  pen.rect(at.gutter - AROUND, 0, at.plot + 2 * AROUND, at.height);
  pen.clip();
  walk(track.crossings, at.scale, {
    bar: (_, left, right) => {
      if (right - left >= LEAST) {
        const x = Math.max(left - AROUND, free) + 0.5;
        free = Math.min(right + AROUND, at.plot + beyond);
        const [edge, width] = [at.gutter + x, free - x - 0.5];
        pen.fillStyle = pen.strokeStyle = theme.muted;
        pen.lineWidth = 1;
        pen.globalAlpha = FILL;
        pen.fillRect(edge, top, width, height);
        pen.globalAlpha = EDGE;
        pen.strokeRect(edge, top, width, height);
        pen.globalAlpha = 1;
      }
    },
    shade: () => undefined
  });
  pen.restore();
}
