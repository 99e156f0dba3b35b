/** Paints the calls of a timeline: shaded from afar, bar by bar close up. */

import { COLOURS, RAMP } from '../../colours.js';
import { functionOf, threadName } from '../../data/call.js';
import { hasFailed, type TimedCompilation } from '../../data/labels.js';
import { lowerBound } from '../../data/search-sorted.js';
import type { Store } from '../../data/store.js';
import { failedWords, timeWords } from '../../data/words.js';
import { AXIS, cut, type Geometry, inkOn, LEAST_LABELLED, shadeOf, type Theme } from './canvas.js';
import { paintAxis, paintGround, paintNames } from './canvas.js';
import { type Range, type Track, type Tracks, walk } from './tracks.js';

export const OUTLINED = 7; // width from which a failing call is outlined and needs no cross
const MARKS_APART = 9;
const LEAST_CROSSING = 6; // width; narrower crossings have no outline
const AROUND_CROSSING = 2; // pixels between a call and the outline
const COMPILATIONS = 'compilation'; // name of the band
const SAMPLES = 8;
const DOMINANT = 0.6;

/** The color of the calls of a track from `place` to before `next`, which share a pixel. */
export type Colouring = (track: Track, place: number, next: number) => string;

/** By the site of most of the calls, or else gray. */
export function bySite(store: Store, theme: Theme): Colouring {
  const colour = (row: number): number => {
    const site = store.site(row);
    return site === null ? COLOURS : store.colour(site);
  };
  return (track, place, next) => {
    // A few calls, always the same ones, so that colors do not flicker when panning.
    let step = 1;
    while (step * SAMPLES < next - place) {
      step *= 2;
    }
    const counts = new Uint8Array(COLOURS + 1);
    let samples = 0;
    for (let at = Math.ceil(place / step) * step; at < next; at += step, samples++) {
      counts[colour(track.row(at))]!++;
    }
    return theme.sites[counts.findIndex(count => count >= DOMINANT * samples)] ?? theme.mixed;
  };
}

/** By the mean duration, on a logarithmic scale from the shortest to the longest. */
export function byDuration(theme: Theme, [shortest, longest]: Range): Colouring {
  const least = Math.max(shortest, 1);
  const scale = RAMP / Math.log(Math.max(longest / least, 1 + 1e-9));
  return (track, first, next) => {
    const ns = track.busyBetween(first, next) / (next - first);
    const place = Math.floor(Math.log(Math.max(ns / least, 1)) * scale);
    return theme.durations[Math.min(place, RAMP - 1)]!;
  };
}

/** The durations at which the colors change, with both ends. */
export function rampEdges([shortest, longest]: Range): number[] {
  const least = Math.max(shortest, 1);
  const ratio = Math.max(longest / least, 1);
  return Array.from({ length: RAMP + 1 }, (_, place) => least * ratio ** (place / RAMP));
}

export class Picture {
  constructor(
    private readonly pen: CanvasRenderingContext2D,
    private readonly at: Geometry,
    private readonly theme: Theme,
    private readonly store: Store,
    private readonly tracks: Tracks,
    private readonly colouring: Colouring
  ) {}

  /** Paints everything; calls that do not pass the filter are dimmed. */
  paint(hovered: number | null, range: Range | null): void {
    const { pen, at, theme, store, tracks } = this;
    const { all, lit } = tracks;
    const [first, last] = at.visible;
    paintGround(pen, at, theme);
    if (first < at.firstThread) {
      this.compilations(first);
    }
    for (let band = Math.max(first, at.firstThread); band < last; band++) {
      const nth = band - at.firstThread;
      if (!store.showsAll()) {
        this.band(all[nth]!, band, true);
      }
      this.band(lit[nth]!, band, false);
      lit[nth]!.forEach(track => this.marks(track, band));
    }
    paintAxis(pen, at, theme);
    paintNames(pen, at, theme, band => {
      const thread = tracks.threads[band - at.firstThread];
      return thread === undefined ? COMPILATIONS : threadName(store, thread);
    });
    for (const [row, selected] of [[hovered, false], [store.selected, true]] as const) {
      if (row !== null) {
        this.outline(row, selected);
      }
    }
    if (range) {
      this.range(range);
    }
  }

  /** Each track over those of outer calls. Tracks that a filter reduced have no crossings. */
  private band(tracks: readonly Track[], band: number, dimmed: boolean): void {
    tracks.forEach((track, n) => {
      this.crossings(track, band);
      this.calls(track, tracks[n + 1], band, dimmed);
    });
  }

  /** A track's calls in their colors, or all `dimmed`; `inner` is drawn over it. */
  private calls(track: Track, inner: Track | undefined, band: number, dimmed: boolean): void {
    const { pen, at, theme, store, colouring } = this;
    const top = at.top(band) + at.barTop(track.depth);
    const height = at.barHeight(track.depth);
    const colour: Colouring = dimmed ? () => theme.dimmed : colouring;
    const fill = (x: number, width: number, fill: string, alpha: number): void => {
      pen.globalAlpha = alpha;
      if (track.depth > 0) {
        pen.fillStyle = theme.back; // an edge, to distinguish it from the outer call
        pen.fillRect(x, top - 1, width, height + 1);
      }
      pen.fillStyle = fill;
      pen.fillRect(x, top, width, height);
      pen.globalAlpha = 1;
    };
    let [start, end, shade, tint] = [0, 0, 0, '']; // of equal pixels, which are drawn together
    const flush = (): void => {
      if (end > start) {
        fill(start, end - start, tint, shade);
      }
      start = end;
    };
    walk(track, at.scale, {
      bar: (place, left, right) => {
        const x = at.gutter + Math.max(left, 0);
        const rest = at.gutter + Math.min(right, at.plot) - x - (right - left > 4 ? 1 : 0);
        const width = Math.max(rest, 1);
        const row = track.row(place);
        const tone = colour(track, place, place + 1);
        fill(x, width, tone, 1);
        if (dimmed) {
          return;
        }
        const failed = hasFailed(store, row);
        if (failed && width >= OUTLINED) {
          pen.strokeStyle = theme.failed;
          pen.lineWidth = 2;
          pen.strokeRect(x + 1, top + 1, width - 2, height - 2);
        }
        const hiding = inner?.firstFrom(track.start(place)) ?? 0; // the first of the inner calls
        const free = inner && hiding < inner.length ? at.x(inner.start(hiding)) - x : width;
        if (Math.min(width, free) >= LEAST_LABELLED) {
          pen.fillStyle = inkOn(tone, pen);
          const words = failed ? failedWords(functionOf(store, row)) : functionOf(store, row);
          pen.fillText(cut(pen, words, Math.min(width, free) - 9), x + 5, top + height / 2 + 0.5);
        }
      },
      shade: (place, next, x) => {
        const alpha = shadeOf(track.busyBetween(place, next) / at.pixel);
        const tone = colour(track, place, next);
        const left = at.gutter + Math.max(x, 0);
        if (left !== end || alpha !== shade || tone !== tint) {
          flush();
          [start, shade, tint] = [left, alpha, tone];
        }
        end = left + 1;
      }
    });
    flush();
  }

  /** Outlines around the calls of crossings, behind these calls and on those of outer tracks. */
  private crossings({ crossings, depth }: Track, band: number): void {
    const { pen, at, theme } = this;
    if (!crossings) {
      return;
    }
    const above = depth > 0 ? AROUND_CROSSING - 1 : AROUND_CROSSING; // the outer call goes on there
    const top = at.top(band) + at.barTop(depth) - above - 0.5;
    const height = at.barHeight(depth) + above + AROUND_CROSSING - 1;
    pen.save();
    pen.beginPath();
    pen.rect(at.gutter - AROUND_CROSSING, 0, at.plot + 2 * AROUND_CROSSING, at.height);
    pen.clip();
    const beyond = at.gutter; // of an edge that is not in the picture
    let free = -beyond; // the pixel after the last outline: they do not overlap
    walk(crossings, at.scale, {
      bar: (_, start, end) => {
        if (end - start < LEAST_CROSSING) {
          return;
        }
        const left = at.gutter + Math.max(start - AROUND_CROSSING, free) + 0.5;
        free = Math.min(end + AROUND_CROSSING, at.plot + beyond);
        const width = at.gutter + free - 0.5 - left;
        pen.globalAlpha = 0.1;
        pen.fillStyle = theme.muted;
        pen.fillRect(left, top, width, height);
        if (depth > 0) {
          pen.globalAlpha = 1; // the color of the outer call may be that of the outline
          pen.strokeStyle = theme.back;
          pen.lineWidth = 2;
          pen.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1);
        }
        pen.globalAlpha = depth > 0 ? 1 : 0.6;
        pen.strokeStyle = theme.muted;
        pen.lineWidth = 1;
        pen.strokeRect(left, top, width, height);
      },
      shade: () => undefined
    });
    pen.restore();
  }

  /**
   * A cross for each failed call if there is room, and a line below where more failed; a triangle
   * over calls that returned NaN or infinity.
   */
  private marks(track: Track, band: number): void {
    const { pen, at, theme } = this;
    const top = at.top(band);
    let free = -Infinity;
    pen.beginPath();
    this.each(track, track.failed, (x, width) => {
      if (width < OUTLINED) {
        pen.fillStyle = theme.failed;
        pen.fillRect(Math.floor(x), top + 3, 1, at.barTop(track.depth));
        if (x >= free) {
          free = x + MARKS_APART;
          pen.moveTo(x - 3, top + 2.5);
          pen.lineTo(x + 3, top + 8.5);
          pen.moveTo(x + 3, top + 2.5);
          pen.lineTo(x - 3, top + 8.5);
        }
      }
    });
    for (const [colour, width] of [[theme.back, 4.5], [theme.failed, 2]] as const) {
      pen.strokeStyle = colour;
      pen.lineWidth = width;
      pen.stroke();
    }
    free = -Infinity;
    this.each(track, track.notFinite, x => {
      if (x >= free) {
        free = x + MARKS_APART;
        pen.beginPath();
        pen.moveTo(x - 4, top + 1);
        pen.lineTo(x + 4, top + 1);
        pen.lineTo(x, top + 8);
        pen.closePath();
        pen.strokeStyle = theme.back;
        pen.lineWidth = 2;
        pen.stroke();
        pen.fillStyle = theme.failed;
        pen.fill();
      }
    });
  }

  /** Visits the middle and the width of some calls, of each pixel only the first. */
  private each(
    track: Track,
    places: readonly number[],
    visit: (x: number, width: number) => void
  ): void {
    const { at } = this;
    const { from, to } = at.scale;
    let nth = lowerBound(places, track.firstOpen(from), 0, places.length);
    for (; nth < places.length && track.start(places[nth]!) < to; nth++) {
      const place = places[nth]!;
      const left = at.x(Math.max(track.start(place), from));
      const right = at.x(Math.min(track.end(place), to));
      visit((left + right) / 2, right - left);
      const next = track.firstFrom(track.start(place) + at.pixel, place);
      nth = Math.max(lowerBound(places, next, nth, places.length) - 1, nth);
    }
  }

  /** Lowering, lighter than compiling, which follows it. If all ended earlier, it says so. */
  private compilations(band: number): void {
    const { pen, at, theme, store } = this;
    const { compilations } = store.labels;
    const top = at.top(band) + at.barTop(0);
    const height = at.barHeight(0);
    pen.fillStyle = theme.muted;
    if (compilations.every(each => endOf(each) < at.scale.from)) {
      const ns = compilations.reduce((sum, each) => sum + each.lower_ns + each.compile_ns, 0);
      const words = cut(pen, `◂ ${timeWords(ns)} before`, at.plot);
      pen.fillText(words, at.gutter + 5, top + height / 2 + 0.5);
    }
    pen.fillStyle = theme.text;
    for (const compilation of compilations) {
      const [start, end] = extent(compilation, at);
      if (end <= start) {
        continue;
      }
      const lowered = at.x(compilation.start_ns + compilation.lower_ns);
      const middle = Math.min(Math.max(lowered, start), end);
      pen.globalAlpha = 0.12; // unlike those of calls, these bars are not solid
      pen.fillRect(start, top, middle - start, height);
      pen.globalAlpha = 0.28;
      pen.fillRect(middle, top, end - middle, height);
      pen.globalAlpha = 1;
      pen.fillRect(end - 1, top, 1, height);
      if (end - middle >= LEAST_LABELLED) {
        const words = cut(pen, compilation.program, end - middle - 9);
        pen.fillText(words, middle + 5, top + height / 2 + 0.5);
      }
    }
  }

  /** An outline around a call; for the selected one also a triangle on the axis. */
  private outline(row: number, selected: boolean): void {
    const { pen, at, theme, tracks, store: { calls } } = this;
    const nth = tracks.threads.indexOf(calls.thread(row));
    const track = tracks.all[nth]?.find(each => each.has(row));
    const start = at.x(calls.start(row));
    const end = at.x(calls.start(row) + calls.duration(row));
    if (!track || end < at.gutter || start > at.width) {
      return;
    }
    const left = Math.max(start, at.gutter) - 1;
    const width = Math.max(Math.min(end, at.width) - left, 3);
    const top = at.top(at.firstThread + nth) + at.barTop(track.depth) - 1;
    const lines = [[theme.back, selected ? 5 : 3], [theme.mark, selected ? 2 : 1]] as const;
    for (const [colour, wide] of lines) {
      pen.strokeStyle = colour;
      pen.lineWidth = wide;
      pen.strokeRect(left, top, width, at.barHeight(track.depth) + 2);
    }
    if (selected) {
      const x = (Math.max(start, at.gutter) + Math.min(end, at.width)) / 2;
      pen.fillStyle = theme.mark;
      pen.beginPath();
      pen.moveTo(x - 5, AXIS - 8);
      pen.lineTo(x + 5, AXIS - 8);
      pen.lineTo(x, AXIS - 1);
      pen.fill();
    }
  }

  /** A marked range: darker on the axis than over the calls, which stay readable. */
  private range([from, to]: Range): void {
    const { pen, at, theme } = this;
    const left = Math.max(at.x(from), at.gutter);
    const right = Math.min(at.x(to), at.width);
    if (right < left) {
      return;
    }
    pen.fillStyle = theme.mark;
    for (const [alpha, height] of [[0.2, AXIS], [0.08, at.height]] as const) {
      pen.globalAlpha = alpha;
      pen.fillRect(left, 0, right - left, height);
    }
    pen.globalAlpha = 1;
    for (const edge of [at.x(from), at.x(to)].filter(each => each >= left && each <= right)) {
      pen.fillRect(Math.round(edge), 0, 1, at.height);
    }
  }
}

export function endOf({ start_ns, lower_ns, compile_ns }: TimedCompilation): number {
  return start_ns + lower_ns + compile_ns;
}

/** The first pixel of a compilation, and the one after its last; at least one pixel wide. */
function extent(compilation: TimedCompilation, at: Geometry): [number, number] {
  const start = at.x(compilation.start_ns);
  const end = Math.max(at.x(endOf(compilation)), start + 1);
  return [Math.max(start, at.gutter), Math.min(end, at.gutter + at.plot)];
}

const REACH = 4; // tolerance beside a call, in pixels

/** What is at a point. */
export interface Hit {
  readonly row: number | null;
  readonly crowd: number; // calls in the pixel below the pointer
  readonly compilation?: TimedCompilation;
}

/** The call at a point, preferring inner and failed ones, or the compilation; null: neither. */
export function hit(store: Store, tracks: Tracks, at: Geometry, x: number, y: number): Hit | null {
  const band = x < at.gutter ? null : at.bandAt(y);
  if (band === null) {
    return null;
  }
  if (band < at.firstThread) {
    const compilation = store.labels.compilations.filter(each => {
      const [start, end] = extent(each, at);
      return start <= x && x < end;
    }).at(-1);
    return compilation ? { row: null, crowd: 0, compilation } : null;
  }
  const [ns, reach] = [at.ns(x), REACH * at.pixel];
  for (const track of [...tracks.lit[band - at.firstThread]!].reverse()) {
    const isAbove = track.depth > 0 && y - at.top(band) < at.barTop(track.depth) - 1;
    const place = isAbove ? null : track.nearest(ns, reach);
    if (place !== null) {
      const start = at.ns(Math.floor(x));
      const crowd = track.firstFrom(start + at.pixel) - track.firstFrom(start);
      const { failed } = track;
      const cross = failed[lowerBound(failed, track.firstOpen(ns - reach), 0, failed.length)] ?? -1;
      const isCross = cross >= 0 && track.end(cross) - track.start(cross) < OUTLINED * at.pixel;
      const isNear = isCross && track.start(cross) <= ns + reach;
      return { row: track.row(isNear ? cross : place), crowd };
    }
  }
  return null;
}
