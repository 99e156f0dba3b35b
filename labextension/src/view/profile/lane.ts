/** The spans of one thread or device, for drawing and searching. */

import { lowerBound } from '../data/search-sorted.js';
import type { Sequence } from '../calls/timeline/tracks.js';

export class Lane implements Sequence {
  readonly length: number;
  private readonly starts: Float64Array;
  private readonly ends: Float64Array;
  private readonly parts: Uint32Array;

  /** Args: spans: triples of start, duration and part; zero: added to the starts. */
  constructor(
    readonly name: string,
    spans: readonly number[],
    zero: number
  ) {
    this.length = Math.floor(spans.length / 3);
    this.starts = new Float64Array(this.length);
    this.ends = new Float64Array(this.length);
    this.parts = new Uint32Array(this.length);
    for (let place = 0; place < this.length; place++) {
      const start = spans[3 * place]! + zero;
      this.starts[place] = start;
      this.ends[place] = start + spans[3 * place + 1]!;
      this.parts[place] = spans[3 * place + 2]!;
    }
  }

  start(place: number): number {
    return this.starts[place]!;
  }

  end(place: number): number {
    return this.ends[place]!;
  }

  /** The index of a span's part in the profile. */
  part(place: number): number {
    return this.parts[place]!;
  }

  firstFrom(ns: number, low = 0): number {
    return lowerBound(this.starts, ns, low, this.length);
  }

  firstOpen(ns: number): number {
    const place = this.firstFrom(ns);
    return place > 0 && this.end(place - 1) > ns ? place - 1 : place;
  }

  /** The span at a time, or else one that is at most `reach` away; null: none. */
  at(ns: number, reach: number): number | null {
    const after = this.firstOpen(ns);
    let best: number | null = null;
    let distance = reach;
    for (const place of [after, after - 1]) {
      if (place >= 0 && place < this.length) {
        const away = Math.max(this.start(place) - ns, ns - this.end(place), 0);
        if (away < distance) {
          distance = away;
          best = place;
        }
      }
    }
    return best;
  }
}
