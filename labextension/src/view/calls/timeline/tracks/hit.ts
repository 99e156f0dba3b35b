/** Finds the call at a point of the timeline. */

import type { Store } from '../../../data/store.js';
import { AXIS, OUTLINED, type Geometry } from '../picture/geometry.js';
import type { Track } from './track.js';

const REACH = 4; // tolerance beside a call, in pixels

export interface Hit {
  readonly row: number;
  readonly crowd: number; // calls in the pixel below the pointer
}

/** The call at a point, preferring inner and failed calls; null: none is near. */
export function hit(
  tracks: readonly Track[],
  at: Geometry,
  band: number,
  x: number,
  y: number
): Hit | null {
  const below = y - at.top(band);
  for (const track of [...tracks].sort((a, b) => b.depth - a.depth)) {
    if (track.depth > 0 && below < at.barTop(track.depth) - 1) {
      continue;
    }
    const place = nearest(track, at, at.ns(x));
    if (place !== null) {
      const pixel = at.pixel;
      const start = at.ns(Math.floor(x));
      const crowd = track.firstFrom(start + pixel) - track.firstFrom(start);
      return { row: track.row(failing(track, at.ns(x), pixel) ?? place), crowd };
    }
  }
  return null;
}

function nearest(track: Track, at: Geometry, ns: number): number | null {
  const after = track.firstFrom(ns);
  let best: number | null = null;
  let distance = REACH * at.pixel;
  for (const place of [after - 1, after]) {
    if (place >= 0 && place < track.length) {
      const away = Math.max(track.start(place) - ns, ns - track.end(place), 0);
      if (away < distance) {
        distance = away;
        best = place;
      }
    }
  }
  return best;
}

/** The failed call whose cross is at a point. */
function failing(track: Track, ns: number, pixel: number): number | null {
  const nth = track.failureFrom(track.firstOpen(ns - REACH * pixel));
  if (nth === track.failures) {
    return null;
  }
  const place = track.failure(nth);
  const small = track.end(place) - track.start(place) < OUTLINED * pixel;
  return small && track.start(place) <= ns + REACH * pixel ? place : null;
}

/** Whether a point is on the time axis. */
export function onAxis(y: number): boolean {
  return y < AXIS;
}

/** The next (`step` 1) or previous (-1) call that passes the filter; null: none. */
export function neighbour(store: Store, from: number, to: number, step: 1 | -1): number | null {
  const { calls, selected } = store;
  let row = selected === null ? (step > 0 ? 0 : calls.length - 1) : selected + step;
  const outside = (each: number) =>
    selected === null && (step > 0 ? calls.start(each) < from : calls.start(each) > to);
  while (row >= 0 && row < calls.length && (outside(row) || !store.shows(row))) {
    row += step;
  }
  return row >= 0 && row < calls.length ? row : null;
}
