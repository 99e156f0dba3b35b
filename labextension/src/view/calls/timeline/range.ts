/** A range of the timeline that the user has marked, with figures of the calls in it. */

import type { Store } from '../../data/store.js';
import { callWords, failedWords, timeWords } from '../../data/words.js';
import { button, h, setText } from '../../dom/elements.js';
import { quantile } from '../distribution/figures.js';
import type { Track } from './tracks/track.js';

const MOST_LIVE = 50_000; // calls whose median is computed while the user drags

/** From one time to a later one, in nanoseconds since the first call. */
export type Range = readonly [from: number, to: number];

/** Figures of the calls that run in a range. */
export interface RangeFigures {
  readonly calls: number;
  readonly failed: number;
  readonly sum: number; // the time of these calls in the range
  readonly median: number | null; // of their whole durations; null: not computed, or no calls
}

/** The figures of the calls of `tracks`; `hasMedian`: whether to sort the durations of very many calls, too. */
export function figuresIn(
  tracks: readonly Track[],
  { calls }: Store,
  [from, to]: Range,
  hasMedian: boolean
): RangeFigures {
  const some = tracks
    .map(track => ({ track, first: track.firstOpen(from), next: track.firstFrom(to) }))
    .filter(({ first, next }) => next > first);
  const count = some.reduce((sum, { first, next }) => sum + next - first, 0);
  const within = some.map(({ track, first, next }) => {
    const early = Math.max(from - track.start(first), 0);
    const late = Math.max(track.end(next - 1) - to, 0);
    return track.busyBetween(first, next) - early - late;
  });
  const failed = some.map(
    ({ track, first, next }) => track.failureFrom(next) - track.failureFrom(first)
  );
  const durations = new Float64Array(hasMedian || count <= MOST_LIVE ? count : 0);
  let filled = 0;
  for (const { track, first, next } of durations.length ? some : []) {
    for (let place = first; place < next; place++) {
      durations[filled++] = calls.duration(track.row(place));
    }
  }
  return {
    calls: count,
    failed: failed.reduce((sum, each) => sum + each, 0),
    sum: within.reduce((sum, each) => sum + each, 0),
    median: filled ? quantile(durations.sort(), 0.5) : null
  };
}

/** The figures as text, with buttons that zoom to the range and remove it. */
export class RangeBox {
  readonly node = h('div', { class: 'jaxcb-timeline-range', hidden: true });
  private readonly words = h('span', {
    role: 'status',
    title: 'Sum: the time of these calls in the range. Median: of their whole durations.'
  });

  constructor(zoom: () => void, clear: () => void) {
    this.node.append(
      this.words,
      button({ title: 'Zoom to the range (F)' }, zoom, 'Zoom'),
      button({ title: 'Remove the range (Esc)', 'aria-label': 'Remove the range' }, clear, '✕')
    );
  }

  /** Shows figures; null: no range. `filtered`: of the calls that pass the filters. */
  show(range: Range | null, figures: RangeFigures | null, filtered: boolean): void {
    this.node.hidden = !range;
    setText(this.words, range && figures ? rangeWords(range, figures, filtered) : '');
  }
}

/** `2.2 ms: 312 calls · sum 1.9 ms · median 4.1 µs`. */
function rangeWords([from, to]: Range, figures: RangeFigures, filtered: boolean): string {
  const { calls, failed, sum, median } = figures;
  return [
    `${timeWords(to - from)}: ${callWords(calls)}${filtered ? ' that pass the filters' : ''}`,
    calls > 0 && `sum ${timeWords(sum)}`,
    calls > 0 && `median ${median === null ? '…' : timeWords(median)}`,
    failed > 0 && failedWords(`${failed.toLocaleString('en-US')} failed`)
  ].filter(Boolean).join(' · ');
}
