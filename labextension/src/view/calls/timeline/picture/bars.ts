/** Draws the calls of one track. */

import { functionOf } from '../../../data/call.js';
import { hasFailed } from '../../../data/labels.js';
import { failedWords } from '../../../data/words.js';
import type { Store } from '../../../data/store.js';
import { cut } from './axis.js';
import type { Colouring } from './colouring.js';
import { type Geometry, OUTLINED } from './geometry.js';
import { type Spans, walk } from '../tracks/spans.js';
import type { Theme } from './theme.js';
import type { Track } from '../tracks/track.js';

export const LEAST_LABELLED = 26; // width
const SHADES = 12;
const FAINTEST = 0.28; // keeps very short calls visible
const MARKS_APART = 9;

/** The settings of one drawing, equal for all tracks. */
export interface Drawing {
  readonly pen: CanvasRenderingContext2D;
  readonly at: Geometry;
  readonly theme: Theme;
  readonly store: Store;
  readonly colouring: Colouring;
}

/** A track's calls in their colors, or all `dimmed`; `inner` is drawn over it. */
export function paintTrack(
  drawing: Drawing,
  track: Track,
  inner: Track | undefined,
  band: number,
  dimmed: boolean
): void {
  const { pen, at } = drawing;
  const painter = new Painter(drawing, track, inner, at.top(band) + at.barTop(track.depth), dimmed);
  walk(track, at.scale, painter);
  painter.flush();
  pen.globalAlpha = 1;
}

/** The opacity of a pixel that is busy for a share of its time. */
export function shadeOf(share: number): number {
  return FAINTEST + ((1 - FAINTEST) * Math.ceil(Math.min(share, 1) * SHADES)) / SHADES;
}

class Painter implements Spans {
  private readonly height: number;
  private left = 0; // of the pending shades, which are drawn together
  private right = 0;
  private shadeAlpha = 0;
  private shadeColour = '';

  constructor(
    private readonly drawing: Drawing,
    private readonly track: Track,
    private readonly inner: Track | undefined,
    private readonly top: number,
    private readonly dimmed: boolean
  ) {
    this.height = drawing.at.barHeight(track.depth);
  }

  bar(place: number, left: number, right: number): void {
    const { pen, at, theme, store } = this.drawing;
    const x = at.gutter + Math.max(left, 0);
    const end = at.gutter + Math.min(right, at.plot);
    const width = Math.max(end - x - (right - left > 4 ? 1 : 0), 1);
    const row = this.track.row(place);
    const { fill, text } = this.drawing.colouring.call(row);
    this.fill(x, width, this.dimmed ? theme.dimmed : fill, 1);
    if (this.dimmed) {
      return;
    }
    const failed = hasFailed(store, row);
    if (failed && width >= OUTLINED) {
      pen.strokeStyle = theme.failed;
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, this.top + 1, width - 2, this.height - 2);
    }
    const free = Math.min(width, this.covered(place) - x);
    if (free >= LEAST_LABELLED) {
      pen.fillStyle = text;
      const called = functionOf(store, row);
      const words = cut(pen, failed ? failedWords(called) : called, free - 9);
      pen.fillText(words, x + 5, this.top + this.height / 2 + 0.5);
    }
  }

  /** The pixel from which inner calls hide a call. */
  private covered(place: number): number {
    const { inner } = this;
    const first = inner ? inner.firstFrom(this.track.start(place)) : 0;
    return inner && first < inner.length ? this.drawing.at.x(inner.start(first)) : Infinity;
  }

  shade(place: number, next: number, x: number): void {
    const { at, theme, colouring } = this.drawing;
    const alpha = shadeOf(this.track.busyBetween(place, next) / at.pixel);
    const colour = this.dimmed ? theme.dimmed : colouring.calls(this.track, place, next);
    const left = at.gutter + Math.max(x, 0);
    if (left !== this.right || alpha !== this.shadeAlpha || colour !== this.shadeColour) {
      this.flush();
      this.left = left;
      this.shadeAlpha = alpha;
      this.shadeColour = colour;
    }
    this.right = left + 1;
  }

  /** Draws the pending shades. */
  flush(): void {
    if (this.right > this.left) {
      this.fill(this.left, this.right - this.left, this.shadeColour, this.shadeAlpha);
      this.left = this.right;
    }
  }

  /** Inner calls get an edge, to distinguish them from the outer call. */
  private fill(x: number, width: number, colour: string, alpha: number): void {
    const { pen, theme } = this.drawing;
    pen.globalAlpha = alpha;
    if (this.track.depth > 0) {
      pen.fillStyle = theme.back;
      pen.fillRect(x, this.top - 1, width, this.height + 1);
    }
    pen.fillStyle = colour;
    pen.fillRect(x, this.top, width, this.height);
    pen.globalAlpha = 1;
  }
}

/** Draws a cross for each failed call if there is room, and a line below where more failed. */
export function paintFailures({ pen, at, theme }: Drawing, track: Track, band: number): void {
  const { from, to } = at.scale;
  const crosses: number[] = [];
  const top = at.top(band);
  pen.fillStyle = theme.failed;
  let nth = track.failureFrom(track.firstOpen(from));
  while (nth < track.failures) {
    const place = track.failure(nth);
    const start = track.start(place);
    if (start >= to) {
      break;
    }
    const x = at.x(Math.max(start, from));
    const width = at.x(Math.min(track.end(place), to)) - x;
    if (width < OUTLINED) {
      const center = x + width / 2;
      pen.fillRect(Math.floor(center), top + 3, 1, at.barTop(track.depth));
      if (crosses.length === 0 || center - crosses[crosses.length - 1]! >= MARKS_APART) {
        crosses.push(center);
      }
    }
    nth = Math.max(track.failureFrom(track.firstFrom(start + at.pixel, place)), nth + 1);
  }
  strokeCrosses(pen, crosses, top + 5.5, theme);
}

/** Draws a triangle over calls that returned NaN or infinity, where there is room. */
export function paintNotFinite({ pen, at, theme }: Drawing, track: Track, band: number): void {
  const { from, to } = at.scale;
  const top = at.top(band) + 1;
  let free = -Infinity;
  for (const place of track.notFinite(track.firstOpen(from), track.firstFrom(to))) {
    const start = Math.max(track.start(place), from);
    const x = Math.max((at.x(start) + at.x(Math.min(track.end(place), to))) / 2, at.gutter);
    if (x >= free) {
      free = x + MARKS_APART;
      pen.beginPath();
      pen.moveTo(x - 4, top);
      pen.lineTo(x + 4, top);
      pen.lineTo(x, top + 7);
      pen.closePath();
      pen.strokeStyle = theme.back;
      pen.lineWidth = 2;
      pen.stroke();
      pen.fillStyle = theme.failed;
      pen.fill();
    }
  }
}

function strokeCrosses(
  pen: CanvasRenderingContext2D,
  crosses: readonly number[],
  y: number,
  theme: Theme
): void {
  const arm = 3;
  pen.beginPath();
  for (const x of crosses) {
    pen.moveTo(x - arm, y - arm);
    pen.lineTo(x + arm, y + arm);
    pen.moveTo(x + arm, y - arm);
    pen.lineTo(x - arm, y + arm);
  }
  for (const [colour, width] of [[theme.back, 4.5], [theme.failed, 2]] as const) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.stroke();
  }
}
