/** The geometry of the timeline's canvas, in CSS pixels. */

import type { Scale } from '../tracks/spans.js';

export const AXIS = 22;
export const BAND = 22;
export const MOST_BANDS = 8; // visible at once; more are scrolled to

export const OUTLINED = 7; // width from which a failing call is outlined and needs no cross

const GUTTER = 128; // for short names
const GUTTER_SHARE = 0.3; // of the width, at most
const LETTER = 6; // approximate width of a letter
const AROUND_NAME = 16;
const BAR = 16;
const BAR_STEP = 3; // how much lower the bar of an inner call is
const EDGE = 8; // margin at the right for the last call

/** The range of time that is drawn. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
  readonly span: number;
}

/** The measures of one drawing. */
export class Geometry {
  readonly gutter: number; // for the names of threads
  readonly plot: number; // width of what is after it

  constructor(
    readonly width: number,
    readonly height: number,
    readonly scrolled: number, // vertical scroll position, in pixels
    readonly bands: number,
    readonly firstThread: number, // its band; the band above it, if any, is of compilations
    letters: number, // of the longest name
    private readonly window: TimeRange
  ) {
    const wanted = Math.max(GUTTER, LETTER * letters + AROUND_NAME);
    this.gutter = Math.min(wanted, Math.round(GUTTER_SHARE * width));
    this.plot = Math.max(width - this.gutter - EDGE, 1);
  }

  get scale(): Scale {
    return { from: this.window.from, to: this.window.to, width: this.plot };
  }

  x(ns: number): number {
    return this.gutter + ((ns - this.window.from) / this.window.span) * this.plot;
  }

  ns(x: number): number {
    return this.window.from + ((x - this.gutter) / this.plot) * this.window.span;
  }

  /** The duration of a pixel. */
  get pixel(): number {
    return this.window.span / this.plot;
  }

  /** The top of a band. */
  top(band: number): number {
    return AXIS + band * BAND - this.scrolled;
  }

  /** The first band that is visible, and the one after the last. */
  get visible(): [number, number] {
    const first = Math.floor(this.scrolled / BAND);
    const last = Math.ceil((this.scrolled + this.height - AXIS) / BAND);
    return [Math.max(first, 0), Math.min(last, this.bands)];
  }

  /** The band at a height; null: none. */
  band(y: number): number | null {
    const band = Math.floor((y - AXIS + this.scrolled) / BAND);
    return y >= AXIS && band >= 0 && band < this.bands ? band : null;
  }
}

/** The height of a call's bar, which stands on the bottom of its band. */
export function barHeight(depth: number): number {
  return BAR - BAR_STEP * depth;
}

/** From the top of its band to the top of a call's bar. */
export function barTop(depth: number): number {
  return BAND - 2 - barHeight(depth);
}
