/** Reduces a track to bars for wide calls and shades for pixels with several calls. */

/** Maps time to a width in pixels. */
export interface Scale {
  readonly from: number;
  readonly to: number;
  readonly width: number;
}

/** Calls or other spans of time, in the order in which they start; they do not overlap. */
export interface Sequence {
  readonly length: number;
  start(place: number): number;
  end(place: number): number;
  /** The first place, from `low` on, that starts at `ns` or later. */
  firstFrom(ns: number, low?: number): number;
  /** The first place that has not ended at `ns`. */
  firstOpen(ns: number): number;
}

export interface Spans {
  /** One call, from pixel `left` to `right`. */
  bar(place: number, left: number, right: number): void;
  /** The calls from `place` to before `next` share the pixel at `x`. */
  shade(place: number, next: number, x: number): void;
}

/** Takes a few searches per pixel, independent of the number of calls. */
export function walk(track: Sequence, { from, to, width }: Scale, spans: Spans): void {
  const pixel = (to - from) / width;
  let place = track.firstOpen(from);
  while (place < track.length && track.start(place) < to) {
    const left = (track.start(place) - from) / pixel;
    const right = (track.end(place) - from) / pixel;
    if (right - left >= 1) {
      spans.bar(place, left, right);
      place++;
      continue;
    }
    const x = Math.floor(left);
    let next = Math.max(track.firstFrom(from + (x + 1) * pixel, place), place + 1);
    const last = next - 1;
    if (last > place && track.end(last) - track.start(last) >= pixel) {
      next = last;
    }
    spans.shade(place, next, x);
    place = next;
  }
}

const SAMPLES = 8;
const DOMINANT = 0.6;

/**
 * The site of most of the calls from `place` to before `next`; null: no site.
 *
 * Samples a few calls, always the same ones, so that colors do not flicker when panning.
 */
export function dominant(
  track: { row(place: number): number },
  place: number,
  next: number,
  site: (row: number) => number | null
): number | null {
  let step = 1;
  while (step * SAMPLES < next - place) {
    step *= 2;
  }
  const counts = new Map<number | null, number>();
  let samples = 0;
  for (let at = Math.ceil(place / step) * step; at < next; at += step) {
    const each = site(track.row(at));
    counts.set(each, (counts.get(each) ?? 0) + 1);
    samples++;
  }
  for (const [each, count] of counts) {
    if (count >= DOMINANT * samples) {
      return each;
    }
  }
  return null;
}
