/** Finds which calls of a track were made in one crossing. */

import { lowerBound } from '../../../data/search-sorted.js';
import type { Sequence } from './spans.js';

/** The calls of a track, as far as they are needed here. */
export interface Placed {
  start(place: number): number;
  end(place: number): number;
  firstFrom(ns: number): number;
}

/** Runs of two or more calls of a track that one crossing made. */
export class Crossings implements Sequence {
  private readonly firsts: number[] = []; // places
  private readonly lasts: number[] = [];
  private latest: number | null = null; // the crossing of the last call

  constructor(private readonly track: Placed) {}

  /** Adds the call at the next place of the track; null: its crossing is not known. */
  add(place: number, crossing: number | null): void {
    if (crossing !== null && crossing === this.latest) {
      const open = this.lasts.length > 0 && this.lasts[this.lasts.length - 1] === place - 1;
      if (open) {
        this.lasts[this.lasts.length - 1] = place;
      } else {
        this.firsts.push(place - 1);
        this.lasts.push(place);
      }
    }
    this.latest = crossing;
  }

  get length(): number {
    return this.firsts.length;
  }

  /** The place of the first call of the n-th crossing. */
  first(n: number): number {
    return this.firsts[n]!;
  }

  /** The place of its last call. */
  last(n: number): number {
    return this.lasts[n]!;
  }

  start(n: number): number {
    return this.track.start(this.first(n));
  }

  end(n: number): number {
    return this.track.end(this.last(n));
  }

  firstFrom(ns: number, low = 0): number {
    return lowerBound(this.firsts, this.track.firstFrom(ns), low, this.length);
  }

  firstOpen(ns: number): number {
    const n = this.firstFrom(ns);
    return n > 0 && this.end(n - 1) > ns ? n - 1 : n;
  }
}
