/** The geometry of the timeline's canvas, in CSS pixels. */

import type { Scale } from '../tracks/spans.js';

export const AXIS = 22;
export const BAND = 22; // the least height of a band

const FIRST_BANDS = 8; // visible at once, unless the user drags; more are scrolled to
const TALLEST = 88; // band
const TALLEST_ALL = 800; // all visible bands

export const OUTLINED = 7; // width from which a failing call is outlined and needs no cross

const GUTTER = 128; // for short names
const GUTTER_SHARE = 0.3; // of the width, at most
const LETTER = 6; // approximate width of a letter
const AROUND_NAME = 16;
const AROUND_BAR = 6; // how much higher a band is than a bar
const BAR_STEP = 3 / BAND; // of a band: how much lower the bar of an inner call is
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
    private readonly window: TimeRange,
    readonly band: number = BAND // the height of each
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
    return AXIS + band * this.band - this.scrolled;
  }

  /** The first band that is visible, and the one after the last. */
  get visible(): [number, number] {
    const first = Math.floor(this.scrolled / this.band);
    const last = Math.ceil((this.scrolled + this.height - AXIS) / this.band);
    return [Math.max(first, 0), Math.min(last, this.bands)];
  }

  /** The band at a height; null: none. */
  bandAt(y: number): number | null {
    const band = Math.floor((y - AXIS + this.scrolled) / this.band);
    return y >= AXIS && band >= 0 && band < this.bands ? band : null;
  }

  /** The height of a call's bar, which stands on the bottom of its band. */
  barHeight(depth: number): number {
    return this.band - AROUND_BAR - Math.round(BAR_STEP * this.band) * depth;
  }

  /** From the top of its band to the top of a call's bar. */
  barTop(depth: number): number {
    return this.band - 2 - this.barHeight(depth);
  }
}

/** Heights of the timeline without its axis. */
export interface Heights {
  readonly band: number; // of each
  readonly shown: number; // of the visible ones
  readonly least: number; // to which the user can drag `shown`
  readonly most: number;
}

/**
 * The heights for a number of bands. First there is room for eight, each as low as possible. If the
 * user asks for more room, more of them are visible; once all are, they become taller.
 */
export function heightsOf(bands: number, wanted: number | null): Heights {
  const count = Math.max(bands, 1);
  const least = BAND * Math.min(count, FIRST_BANDS);
  const most = Math.max(Math.min(TALLEST * count, TALLEST_ALL), least);
  const room = Math.min(Math.max(wanted ?? least, least), most);
  const band = Math.max(Math.floor(room / count), BAND);
  return { band, shown: Math.min(room, band * count), least, most };
}
