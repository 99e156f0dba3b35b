/** What timelines have in common: the measures, the colors and the axis of their canvas. */

import { COLOURS, durationColour, RAMP, siteColour } from '../../colours.js';
import type { Scale } from './tracks.js';

export const AXIS = 22; // heights, in CSS pixels
export const BAND = 22; // the least
const FIRST_BANDS = 8; // visible at once, unless the user drags; more are scrolled to
const TALLEST = 88; // band
const TALLEST_ALL = 800; // all visible bands

export const LEAST_LABELLED = 26; // width of a bar with a text
const GUTTER = 128; // width for short names
const GUTTER_SHARE = 0.3; // of the width, at most
const LETTER = 6; // approximate width of a letter
const AROUND_NAME = 16;
const AROUND_BAR = 6; // how much higher a band is than a bar
const BAR_STEP = 3 / BAND; // of a band: how much lower the bar of an inner call is
const EDGE = 8; // margin at the right for the last call
const TICK_APART = 90;

const SHADES = 12;
const FAINTEST = 0.28; // keeps very short calls visible

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

/**
 * The height of each of a number of bands, of the visible ones, and the limits of the latter.
 *
 * First there is room for eight, each as low as possible. If the user asks for more room, more of
 * them are visible; once all are, they become taller.
 */
export function heightsOf(bands: number, wanted: number | null) {
  const count = Math.max(bands, 1);
  const least = BAND * Math.min(count, FIRST_BANDS);
  const most = Math.max(Math.min(TALLEST * count, TALLEST_ALL), least);
  const room = Math.min(Math.max(wanted ?? least, least), most);
  const band = Math.max(Math.floor(room / count), BAND);
  return { band, shown: Math.min(room, band * count), least, most };
}

const NAMES = ['dimmed', 'failed', 'text', 'muted', 'line', 'stripe', 'back', 'mark'] as const;

/** The colors of style/timeline.css: `dimmed` calls do not pass the filter, ... */
export type Theme = Readonly<Record<(typeof NAMES)[number] | 'mixed' | 'font', string>> & {
  readonly sites: readonly string[];
  readonly durations: readonly string[]; // from short to long
};

/** Reads the current theme around `node`. */
export function themeOf(node: Element): Theme {
  const style = getComputedStyle(node);
  const read = (name: string) => style.getPropertyValue(name).trim() || '#808080';
  const named = NAMES.map(name => [name, read(`--jaxcb-timeline-${name}`)] as const);
  return {
    ...(Object.fromEntries(named) as Record<(typeof NAMES)[number], string>),
    mixed: read('--jaxcb-site-mixed'),
    font: style.fontFamily || 'sans-serif',
    sites: Array.from({ length: COLOURS }, (_, colour) => read(siteColour(colour))),
    durations: Array.from({ length: RAMP }, (_, nth) => read(durationColour(nth)))
  };
}

/** The color of text that is readable on a color; `pen` converts it to numbers. */
export function inkOn(colour: string, pen: CanvasRenderingContext2D): string {
  pen.fillStyle = colour;
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/.exec(String(pen.fillStyle));
  const parts = hex?.slice(1).map(each => (parseInt(each, 16) / 255) ** 2.2) ?? [1, 1, 1];
  const luminance = 0.2126 * parts[0]! + 0.7152 * parts[1]! + 0.0722 * parts[2]!;
  return luminance < 0.179 ? '#ffffff' : '#000000';
}

/** The opacity of a pixel that is busy for a share of its time. */
export function shadeOf(share: number): number {
  return FAINTEST + ((1 - FAINTEST) * Math.ceil(Math.min(share, 1) * SHADES)) / SHADES;
}

/**
 * The pen of a canvas, with CSS pixels as its units, at the resolution of the screen; null: the
 * canvas cannot be drawn on, for example because it is hidden.
 */
export function penOf(
  canvas: HTMLCanvasElement,
  { width, height }: { readonly width: number; readonly height: number }
): CanvasRenderingContext2D | null {
  const pen = width > 0 ? canvas.getContext('2d') : null;
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (pen && (canvas.width !== wide || canvas.height !== high)) {
    canvas.width = wide;
    canvas.height = high;
  }
  pen?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

/** Calls `changed` after every change of size and theme; returns a function that stops this. */
export function watchLook(element: Element, changed: () => void): () => void {
  const size = typeof ResizeObserver === 'function' ? new ResizeObserver(changed) : null;
  size?.observe(element);
  const theme = new MutationObserver(changed);
  const attributeFilter = ['data-jp-theme-light', 'data-jp-theme-name', 'class'];
  theme.observe(document.body, { attributes: true, attributeFilter, childList: true });
  const stop = new AbortController();
  const { signal } = stop;
  // JupyterLab adds a theme's style sheet to the body after it has changed the theme's name.
  document.addEventListener('load', changed, { capture: true, signal });
  for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
    globalThis.matchMedia?.(query).addEventListener('change', changed, { signal });
  }
  return () => {
    size?.disconnect();
    theme.disconnect();
    stop.abort();
  };
}

/** Clears the canvas and draws a faint stripe on every second band. */
export function paintGround(pen: CanvasRenderingContext2D, at: Geometry, theme: Theme): void {
  pen.clearRect(0, 0, at.width, at.height);
  const [first, last] = at.visible;
  pen.fillStyle = theme.stripe;
  for (let band = first + (first % 2); band < last; band += 2) {
    pen.fillRect(0, at.top(band), at.width, at.band);
  }
  pen.font = `11px ${theme.font}`;
  pen.textBaseline = 'middle';
  pen.textAlign = 'left';
}

/** Draws the axis, which covers the bands that scroll below it, and a grid line at each tick. */
export function paintAxis(pen: CanvasRenderingContext2D, at: Geometry, theme: Theme): void {
  pen.clearRect(0, 0, at.width, AXIS);
  const { from, to } = at.scale;
  let free = at.gutter;
  for (const [ns, label] of ticks(from, to, at.plot / TICK_APART)) {
    const x = Math.round(at.x(ns));
    pen.fillStyle = theme.line;
    pen.fillRect(x, AXIS - 5, 1, at.height - AXIS + 5);
    const { width } = pen.measureText(label);
    const left = Math.min(x + 4.5, at.width - width);
    if (left >= free) {
      pen.fillStyle = theme.muted;
      pen.fillText(label, left, AXIS / 2);
      free = left + width + 8;
    }
  }
  pen.fillStyle = theme.line;
  pen.fillRect(0, AXIS - 1, at.width, 1);
}

/** Draws the name of each visible band, cut where it is too long. */
export function paintNames(
  pen: CanvasRenderingContext2D,
  at: Geometry,
  theme: Theme,
  name: (band: number) => string
): void {
  const [first, last] = at.visible;
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
  let [low, high] = [0, Math.min(text.length, 200)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    const fits = pen.measureText(`${text.slice(0, middle)}…`).width <= width;
    [low, high] = fits ? [middle, high] : [low, middle - 1];
  }
  return low < 2 ? '' : `${text.slice(0, low)}…`;
}

const UNITS = [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]] as const;
const MOST_DIGITS = 7;

/**
 * At most `most` ticks in steps of 1, 2 or 5 times a power of ten. When zoomed in far from the
 * start, all labels but the first are relative to it.
 */
export function ticks(from: number, to: number, most: number): [ns: number, label: string][] {
  const least = Math.max((to - from) / Math.max(most, 1), 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * ([1, 2, 5, 10].find(each => each * power >= least) ?? 10);
  const first = Math.ceil(from / step);
  const largest = Math.max(Math.abs(from), to);
  const isFar = largest / step >= 10 ** MOST_DIGITS;
  return Array.from({ length: Math.floor(to / step) - first + 1 }, (_, nth) => {
    const ns = (first + nth) * step;
    const isRelative = isFar && nth > 0;
    return [ns, isRelative ? `+${inUnit(nth * step, step, step)}` : inUnit(ns, largest, step)];
  });
}

function inUnit(ns: number, largest: number, step: number): string {
  if (ns === 0) {
    return '0';
  }
  const [unit, scale] = UNITS.find(([, each]) => largest >= each) ?? UNITS[3];
  const digits = Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9));
  return `${(ns / scale).toFixed(digits).replace('-', '−')} ${unit}`;
}
