/** A timeline of host calls by thread, on a canvas: shaded from afar, bar by bar close up. */

import { callLine, threadName } from '../../data/call.js';
import phrases from '../../data/phrases.json';
import type { Change, Store } from '../../data/store.js';
import { hideTooltip, placeTooltip } from '../../dom/tooltip.js';
import { fillCompilation, fillDetails } from './details.js';
import { type ColourBy, Frame } from './frame.js';
import { Geometry, heightsOf } from './picture/geometry.js';
import { type Hit, hit, neighbour, onAxis } from './tracks/hit.js';
import { type Actions, listen } from './input.js';
import { bySite, byDuration, type Colouring } from './picture/colouring.js';
import { compilationAt, endOf } from './picture/compilations.js';
import { penOf } from './picture/pen.js';
import { paintMarks, paintPicture } from './picture/picture.js';
import { type Theme, themeOf } from './picture/theme.js';
import { figuresIn, type Range } from './range.js';
import { LitTracks, Tracks } from './tracks/tracks.js';
import { TimeWindow } from './window.js';
import { watchLook } from './picture/look.js';
import { callWords, counted, timeWords } from '../../data/words.js';

const PANNED_SHARE = 0.15;
const ZOOM_STEP = 0.6;
const MOST_NAMES = 200; // names that are measured for the width of the gutter

export class Timeline implements Actions {
  readonly node: HTMLElement;
  private readonly frame: Frame;
  private readonly time = new TimeWindow();
  private readonly tracks: Tracks;
  private readonly lit: LitTracks;
  private hovered: Hit | null = null;
  private pointer: number | null = null; // the pixel that it is on
  private range: Range | null = null; // that the user has marked
  private anchor = 0; // where a drag for a range began, in nanoseconds
  private complete = true; // all calls are in the tracks
  private frameAsked = 0;
  private readonly forget: (() => void)[];

  constructor(private readonly store: Store) {
    this.tracks = new Tracks(store);
    this.lit = new LitTracks(store, this.tracks);
    this.frame = new Frame({
      zoomIn: () => this.zoomAt(ZOOM_STEP),
      zoomOut: () => this.zoomAt(1 / ZOOM_STEP),
      all: () => this.all(),
      colour: by => this.colour(by),
      resize: height => this.resize(height),
      zoomToRange: () => this.zoomToRange(),
      clearRange: () => this.mark(null)
    });
    this.node = this.frame.node;
    this.frame.scroller.addEventListener('scroll', () => this.redraw());
    listen(this.frame.canvas, this);
    this.forget = [
      store.on(change => this.changed(change)),
      watchLook(this.frame.scroller, () => this.redraw())
    ];
    this.grow();
    this.frame.colours(store.layout.colourBy);
    if (store.layout.zoom) {
      this.time.show(...store.layout.zoom);
    }
    this.changed('selected');
  }

  dispose(): void {
    this.forget.forEach(each => each());
    this.leave();
    cancelAnimationFrame(this.frameAsked);
  }

  hover(x: number, y: number, event: PointerEvent): void {
    this.pointer = x;
    const found = this.at(x, y);
    const { details } = this.frame;
    if (!found) {
      this.hide();
      this.hoverCompilation(x, y, event);
      return;
    }
    if (found.row !== this.hovered?.row || found.crowd !== this.hovered.crowd) {
      this.hovered = found;
      fillDetails(details, this.store, found, this.time.callsNs);
      this.redraw();
    }
    placeTooltip(details, event.clientX, event.clientY);
  }

  private hoverCompilation(x: number, y: number, event: PointerEvent): void {
    const at = this.geometry();
    const band = onAxis(y) || x < at.gutter ? null : at.bandAt(y);
    if (band !== null && band < at.firstThread) {
      const found = compilationAt(this.store.labels.compilations, at, x);
      if (found) {
        fillCompilation(this.frame.details, found, this.time.callsNs);
        placeTooltip(this.frame.details, event.clientX, event.clientY);
      }
    }
  }

  leave(): void {
    this.pointer = null;
    this.hide();
  }

  private hide(): void {
    hideTooltip(this.frame.details);
    if (this.hovered) {
      this.hovered = null;
      this.redraw();
    }
  }

  click(x: number, y: number): void {
    if (onAxis(y)) {
      this.mark(null);
    }
    this.store.select(this.at(x, y)?.row ?? null);
  }

  drag(pixels: number, down: number): void {
    this.time.pan(-pixels * this.geometry().pixel);
    this.frame.scroller.scrollTop += down;
    this.redraw();
  }

  markFrom(x: number): void {
    this.anchor = this.timeAt(x);
  }

  markTo(x: number, done: boolean): void {
    const [from, to] = [this.anchor, this.timeAt(x)].sort((a, b) => a - b);
    this.mark([from!, to!], done);
  }

  /** Marks a range and shows its figures; `done`: the user has chosen it. */
  private mark(range: Range | null, done = true): void {
    this.range = range;
    const figures = range && figuresIn(this.lit.all, this.store, range, done);
    this.frame.figures(range, figures, !this.store.showsAll());
    this.redraw();
  }

  private zoomToRange(): void {
    if (this.range) {
      this.time.show(...this.range);
      this.redraw();
    }
  }

  /** The time at a pixel; beside the plot, the time at its edge. */
  private timeAt(x: number): number {
    const { from, to } = this.time;
    return Math.min(Math.max(this.geometry().ns(x), from), to);
  }

  zoomAt(factor: number, x?: number): void {
    const at = this.geometry();
    const middle = (this.time.from + this.time.to) / 2;
    this.time.zoom(factor, x === undefined ? middle : at.ns(Math.max(x, at.gutter)));
    this.hide();
    this.redraw();
  }

  all(): void {
    this.time.all();
    this.hide();
    this.redraw();
  }

  private colour(by: ColourBy): void {
    this.store.layout.colourBy = by;
    this.frame.colours(by);
    this.redraw();
  }

  private resize(height: number | null): void {
    this.store.layout.height = height;
    this.fit();
    this.redraw();
  }

  private fit(): void {
    this.frame.fit(this.bands, this.store.layout.height);
  }

  key(key: string): boolean {
    const { time, store } = this;
    const pan = (share: number) => time.pan(share * time.span);
    const step = (by: 1 | -1) =>
      store.select(neighbour(store, time.from, time.to, by) ?? store.selected);
    const meanings: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => pan(-PANNED_SHARE),
      ArrowRight: () => pan(PANNED_SHARE),
      a: () => pan(-PANNED_SHARE),
      d: () => pan(PANNED_SHARE),
      w: () => this.zoomAt(ZOOM_STEP, this.pointer ?? undefined),
      s: () => this.zoomAt(1 / ZOOM_STEP, this.pointer ?? undefined),
      ArrowUp: () => (this.frame.scroller.scrollTop -= this.geometry().band),
      ArrowDown: () => (this.frame.scroller.scrollTop += this.geometry().band),
      Home: () => time.pan(-time.whole),
      End: () => time.pan(time.whole),
      '+': () => this.zoomAt(ZOOM_STEP),
      '=': () => this.zoomAt(ZOOM_STEP),
      '-': () => this.zoomAt(1 / ZOOM_STEP),
      '0': () => this.all(),
      ']': () => step(1),
      n: () => step(1),
      '[': () => step(-1),
      p: () => step(-1),
      Enter: () => this.enter(),
      f: () => (this.range ? this.zoomToRange() : this.enter()),
      m: () => this.mark([time.from, time.to]),
      '?': () => this.frame.help(),
      Escape: () => (this.range ? this.mark(null) : store.select(null))
    };
    const meaning = meanings[key.length === 1 ? key.toLowerCase() : key];
    meaning?.();
    this.hide();
    this.redraw();
    return meaning !== undefined;
  }

  /** Selects a call near the middle, or next to the selected call. */
  private enter(): void {
    const { store, time } = this;
    if (store.selected === null) {
      const middle = (time.from + time.to) / 2;
      store.select(neighbour(store, middle, time.to, 1));
    } else {
      const start = store.calls.start(store.selected);
      time.center(start, start + store.calls.duration(store.selected));
    }
  }

  private changed(change: Change): void {
    if (change === 'calls') {
      this.grow();
    }
    if (change === 'filter') {
      this.hide();
    }
    if (change !== 'selected') {
      this.lit.forget();
      this.mark(this.range);
    }
    if (change === 'selected' || change === 'labels') {
      const { selected } = this.store;
      this.frame.say(selected === null ? '' : callLine(this.store, selected, this.time.callsNs));
    }
    if (change === 'selected') {
      this.reveal();
    }
    this.redraw();
  }

  private grow(): void {
    const { calls, nowNs } = this.store;
    this.complete = this.tracks.grow();
    this.frame.crossings(this.tracks.haveCrossings);
    const last = calls.length ? calls.start(calls.length - 1) : 0;
    const { compilations } = this.store.labels;
    const end = Math.max(this.tracks.end, last, nowNs);
    const first = Math.min(...compilations.map(one => one.start_ns), this.tracks.start);
    const past = compilations.filter(one => one.start_ns < 0).map(endOf);
    const before = past.length ? Math.min(Math.max(...past), 0) : 0;
    this.time.grow(end, first, Math.max(...compilations.map(endOf), end), before);
    this.fit();
    this.lit.forget();
  }

  private reveal(): void {
    const { calls, selected } = this.store;
    if (selected === null) {
      return;
    }
    this.time.reveal(calls.start(selected), calls.start(selected) + calls.duration(selected));
    const band = this.firstThread + this.tracks.threads.indexOf(calls.thread(selected));
    const at = this.geometry();
    if (at.top(band) < at.top(0) + at.scrolled) {
      this.frame.scroller.scrollTop = band * at.band;
    } else if (at.top(band) + at.band > at.height) {
      this.frame.scroller.scrollTop += at.top(band) + at.band - at.height;
    }
  }

  /** The band of the first thread; a band of compilations may be above it. */
  private get firstThread(): number {
    return this.store.labels.compilations.length ? 1 : 0;
  }

  private get bands(): number {
    return this.firstThread + this.tracks.threads.length;
  }

  private geometry(): Geometry {
    const { canvas, scroller } = this.frame;
    const { threads } = this.tracks;
    const { clientWidth, clientHeight } = canvas;
    const letters = threads
      .slice(0, MOST_NAMES)
      .reduce((most, thread) => Math.max(most, threadName(this.store, thread).length), 0);
    return new Geometry(
      clientWidth,
      clientHeight,
      scroller.scrollTop,
      this.bands,
      this.firstThread,
      letters,
      this.time,
      heightsOf(this.bands, this.store.layout.height).band
    );
  }

  private at(x: number, y: number): Hit | null {
    const at = this.geometry();
    const band = onAxis(y) || x < at.gutter ? null : at.bandAt(y);
    if (band === null || band < at.firstThread) {
      return null;
    }
    return hit(this.lit.of(this.tracks.threads[band - at.firstThread]!), at, band, x, y);
  }

  private redraw(): void {
    if (this.frameAsked === 0) {
      this.frameAsked = requestAnimationFrame(() => {
        this.frameAsked = 0;
        if (!this.complete) {
          this.grow();
          this.redraw();
        }
        this.draw();
      });
    }
  }

  private draw(): void {
    const { from, to, zoomed } = this.time;
    this.store.layout.zoom = zoomed ? [from, to] : null;
    const at = this.geometry();
    const { canvas } = this.frame;
    const pen = penOf(canvas, at);
    if (!pen) {
      return;
    }
    const theme = themeOf(canvas, pen);
    const { store } = this;
    const drawing = { pen, at, theme, store, colouring: this.colouring(theme) };
    paintPicture(drawing, this.tracks, this.lit);
    paintMarks(drawing, this.tracks, this.hovered?.row ?? null, this.range);
    this.frame.describe(summary(this.store, this.tracks));
  }

  /** By duration, the colors are from the shortest to the longest of the calls shown. */
  private colouring(theme: Theme): Colouring {
    if (this.store.layout.colourBy === 'site') {
      return bySite(this.store, theme);
    }
    const [shortest, longest] = this.lit.extremes(this.time.from, this.time.to) ?? [0, 0];
    if (longest > 0) {
      this.frame.durations(shortest, longest);
    }
    return byDuration(this.store, theme, shortest, longest);
  }
}

/** Describes the picture as text. */
function summary({ calls, labels }: Store, { threads, end, failures }: Tracks): string {
  const over = counted(threads.length, 'thread');
  const failed = failures ? `, ${failures.toLocaleString('en-US')} failed` : '';
  const wrong = labels.notFinite.size;
  const notFinite = wrong ? `, ${wrong.toLocaleString('en-US')} ${phrases.words.not_finite}` : '';
  const { length } = labels.compilations;
  const compiled = length ? `, ${counted(length, 'compilation')}` : '';
  return `Timeline of ${callWords(calls.length)} on ${over} in ${timeWords(end)}${failed}${notFinite}${compiled}`;
}
