/** Decides on the colors of calls: by site, or by duration. */

import { RAMP } from '../../../colours.js';
import type { Store } from '../../../data/store.js';
import { dominant } from '../tracks/spans.js';
import type { Track } from '../tracks/track.js';
import type { Theme } from './theme.js';

export interface Colouring {
  /** The colors of one call, and of text on it. */
  call(row: number): { readonly fill: string; readonly text: string };
  /** The color of the calls of a track from `place` to before `next`, which share a pixel. */
  calls(track: Track, place: number, next: number): string;
}

export function bySite(store: Store, theme: Theme): Colouring {
  const colour = (site: number | null) =>
    site === null ? theme.mixed : theme.sites[store.colour(site)]!;
  return {
    call(row) {
      const site = store.site(row);
      const text = site === null ? theme.back : theme.onSites[store.colour(site)]!;
      return { fill: colour(site), text };
    },
    calls: (track, place, next) => colour(dominant(track, place, next, row => store.site(row)))
  };
}

/** Calls that share a pixel have the color of their mean duration. */
export function byDuration(store: Store, theme: Theme, shortest: number, longest: number): Colouring {
  const place = rampPlace(shortest, longest);
  return {
    call(row) {
      const at = place(store.calls.duration(row));
      return { fill: theme.durations[at]!, text: theme.onDurations[at]! };
    },
    calls: (track, first, next) =>
      theme.durations[place(track.busyBetween(first, next) / (next - first))]!
  };
}

/** Returns the place of a duration in the ramp, on a logarithmic scale. */
export function rampPlace(shortest: number, longest: number): (ns: number) => number {
  const least = Math.max(shortest, 1);
  const scale = RAMP / Math.log(Math.max(longest / least, 1 + 1e-9));
  return ns => Math.min(Math.floor(Math.log(Math.max(ns / least, 1)) * scale), RAMP - 1);
}

/** The durations at which the colors of the ramp change, with both ends. */
export function rampEdges(shortest: number, longest: number): number[] {
  const least = Math.max(shortest, 1);
  const ratio = Math.max(longest / least, 1);
  return Array.from({ length: RAMP + 1 }, (_, place) => least * ratio ** (place / RAMP));
}
