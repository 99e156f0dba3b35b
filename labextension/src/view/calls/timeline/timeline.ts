/** A timeline of host calls by thread, on a canvas, which the user zooms and selects in. */

import { callLine, threadName } from '../../data/call.js';
import phrases from '../../data/phrases.json';
import type { Change, Layout, Store } from '../../data/store.js';
import { callWords, counted, numberWords, timeWords } from '../../data/words.js';
import { button, h, set, setText } from '../../dom/elements.js';
import { term } from '../../dom/term.js';
import { hideTooltip, placeTooltip, tooltip } from '../../dom/tooltip.js';
import { onKeys, onPress, type Press } from '../input.js';
import { AXIS, BAND, Geometry, heightsOf, penOf, themeOf, watchLook } from './canvas.js';
import { detailsOf, keysHint, rampSwatches, rangeWords } from './controls.js';
import { byDuration, bySite, endOf, type Hit, hit, Picture } from './picture.js';
import { type Range, Tracks } from './tracks.js';
import { TimeWindow } from './window.js';

const PANNED_SHARE = 0.15;
const ZOOM_STEP = 0.6;
const MOST_NAMES = 200; // names that are measured for the width of the gutter
const ALIASES: Readonly<Record<string, string>> = {
  a: 'ArrowLeft', d: 'ArrowRight', '=': '+', ']': 'n', '[': 'p'
};
const FIELDS = ['row', 'crowd', 'compilation'] as const; // of a hit
const STILL = 4; // pixels that a click may move
const LINE = 16; // pixels per wheel line
const WHEEL = 0.0022;
const REMOVE = 'Remove the range';
const RAMP_TITLE = 'From the shortest to the longest of the calls shown';
const RANGE_TITLE =
  'Sum: the time of these calls in the range. Median: of their whole durations.';

let timelines = 0;

export class Timeline {
  private readonly canvas = h('canvas', {
    class: 'jaxcb-timeline-canvas',
    role: 'application',
    tabindex: 0,
    'aria-roledescription': 'timeline',
    'aria-describedby': `jaxcb-timeline-hint-${++timelines}`
  });
  private readonly room = h('div', { class: 'jaxcb-timeline-room' });
  private readonly scroller = h('div', { class: 'jaxcb-timeline-scroller' },
    this.canvas,
    this.room
  );
  private readonly grip = h('div', {
    class: 'jaxcb-timeline-grip',
    role: 'separator',
    tabindex: 0,
    'aria-orientation': 'horizontal',
    'aria-label': 'Height of the timeline',
    title: 'Drag for taller lanes; double click for their first height'
  });
  private readonly selected = h('p', { class: 'jaxcb-timeline-selected', role: 'status' });
  private readonly details = tooltip();
  private readonly hint = keysHint(`jaxcb-timeline-hint-${timelines}`);
  private readonly question = titled('?', 'Keys of the timeline', () => this.help());
  private readonly colours = {
    site: titled('site', 'Color by site', () => this.choose({ colourBy: 'site' })),
    duration: titled('duration', 'Color by duration', () => this.choose({ colourBy: 'duration' }))
  };
  private readonly ramp = h('span', { class: 'jaxcb-timeline-ramp', title: RAMP_TITLE });
  private readonly outlined = h('span', { class: 'jaxcb-timeline-crossing' },
    term('crossing', 'crossing')
  );
  private readonly rangeWords = h('span', { role: 'status', title: RANGE_TITLE });
  private readonly rangeBox = h('div', { class: 'jaxcb-timeline-range', hidden: true },
    this.rangeWords,
    button({ title: 'Zoom to the range (F)' }, () => this.zoomToRange(), 'Zoom'),
    button({ title: 'Remove the range (Esc)', 'aria-label': REMOVE }, () => this.mark(null), '✕')
  );
  readonly node = h('div', { class: 'jaxcb-timeline' },
    h('div', { class: 'jaxcb-timeline-head' },
      h('div', { class: 'jaxcb-timeline-colours', role: 'group', 'aria-label': 'Color' },
        'Color',
        h('span', { class: 'jaxcb-timeline-switch' }, this.colours.site, this.colours.duration),
        this.ramp,
        this.outlined
      ),
      h('div', { class: 'jaxcb-timeline-buttons' },
        titled('−', 'Zoom out', () => this.zoomAt(1 / ZOOM_STEP)),
        titled('+', 'Zoom in', () => this.zoomAt(ZOOM_STEP)),
        titled('All', 'All: show the whole time range', () => this.all()),
        this.question
      )
    ),
    this.scroller,
    this.grip,
    h('div', { class: 'jaxcb-timeline-foot' }, this.rangeBox, this.hint, this.selected),
    this.details
  );
  private readonly time = new TimeWindow();
  private readonly tracks: Tracks;
  private hovered: Hit | null = null;
  private pointer: number | undefined; // the pixel that it is on
  private range: Range | null = null; // that the user has marked
  private complete = true; // all calls are in the tracks
  private ramped: Range = [0, 0]; // the durations at the ends of the ramp
  private frameAsked = 0;
  private readonly forget: (() => void)[];

  constructor(private readonly store: Store) {
    this.tracks = new Tracks(store);
    set(this.question, { 'aria-controls': this.hint.id, 'aria-expanded': 'false' });
    this.forget = [
      store.on(change => this.changed(change)),
      watchLook(this.scroller, () => this.redraw())
    ];
    const { canvas, grip } = this;
    this.scroller.addEventListener('scroll', () => this.redraw());
    onPress(canvas, event => this.pressed(event), event => this.hover(event));
    for (const type of ['pointercancel', 'pointerleave', 'blur']) {
      canvas.addEventListener(type, () => this.leave());
    }
    canvas.addEventListener('dblclick', () => this.all());
    canvas.addEventListener('wheel', event => this.wheel(event), { passive: false });
    grip.addEventListener('dblclick', () => this.choose({ height: null }));
    onPress(grip, ({ clientY }) => {
      const { shown } = this.heights;
      return { move: event => this.choose({ height: shown + event.clientY - clientY }) };
    });
    onKeys(grip, ({ key }) => {
      const { least, most, shown } = this.heights;
      const steps = { ArrowUp: shown - BAND, ArrowDown: shown + BAND };
      const height = { ...steps, Home: least, End: most }[key];
      if (height !== undefined) {
        this.choose({ height });
      }
      return height !== undefined;
    });
    onKeys(canvas, ({ key }) => {
      const name = key.length === 1 ? key.toLowerCase() : key;
      const meaning = this.meanings[ALIASES[name] ?? name];
      meaning?.();
      this.hide();
      this.redraw();
      return meaning !== undefined;
    });
    this.grow();
    if (store.layout.zoom) {
      this.time.show(...store.layout.zoom);
    }
    this.changed('selected');
  }

  dispose(): void {
    this.forget.forEach(each => each());
    hideTooltip(this.details);
    cancelAnimationFrame(this.frameAsked);
  }

  private readonly meanings: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => this.time.pan(-PANNED_SHARE * this.time.span),
    ArrowRight: () => this.time.pan(PANNED_SHARE * this.time.span),
    ArrowUp: () => (this.scroller.scrollTop -= this.geometry().band),
    ArrowDown: () => (this.scroller.scrollTop += this.geometry().band),
    w: () => this.zoomAt(ZOOM_STEP, this.pointer),
    s: () => this.zoomAt(1 / ZOOM_STEP, this.pointer),
    Home: () => this.time.pan(-this.time.whole),
    End: () => this.time.pan(this.time.whole),
    '+': () => this.zoomAt(ZOOM_STEP),
    '-': () => this.zoomAt(1 / ZOOM_STEP),
    '0': () => this.all(),
    n: () => this.store.select(this.neighbour(this.time.from, 1) ?? this.store.selected),
    p: () => this.store.select(this.neighbour(this.time.from, -1) ?? this.store.selected),
    Enter: () => this.enter(),
    f: () => (this.range ? this.zoomToRange() : this.enter()),
    m: () => this.mark([this.time.from, this.time.to]),
    '?': () => this.help(),
    Escape: () => (this.range ? this.mark(null) : this.store.select(null))
  };

  /** A press that moves pans, or marks a range of time; another one is a click. */
  private pressed({ offsetX: x, offsetY: y, shiftKey }: PointerEvent): Press {
    const isRange = shiftKey || y < AXIS;
    const anchor = this.timeAt(x);
    const markTo = (event: PointerEvent, isChosen: boolean): void => {
      const to = this.timeAt(event.offsetX);
      this.mark([Math.min(anchor, to), Math.max(anchor, to)], isChosen);
    };
    let [lastX, lastY, hasMoved] = [x, y, false];
    return {
      move: event => {
        const { offsetX, offsetY } = event;
        if (!hasMoved && Math.hypot(offsetX - x, offsetY - y) < STILL) {
          return;
        }
        if (!hasMoved) {
          this.leave();
        }
        if (isRange) {
          markTo(event, false);
        } else {
          this.time.pan((lastX - offsetX) * this.geometry().pixel);
          this.scroller.scrollTop += lastY - offsetY;
          this.redraw();
        }
        [lastX, lastY, hasMoved] = [offsetX, offsetY, true];
      },
      up: event => {
        if (!hasMoved) {
          if (y < AXIS) {
            this.mark(null);
          }
          this.store.select(this.hit(x, y)?.row ?? null);
        } else if (isRange) {
          markTo(event, true);
        }
      }
    };
  }

  private hover({ offsetX, offsetY, clientX, clientY }: PointerEvent): void {
    const found = this.hit(offsetX, offsetY);
    this.pointer = offsetX;
    if (!found) {
      this.hide();
      return;
    }
    const { hovered } = this;
    if (FIELDS.some(field => found[field] !== hovered?.[field])) {
      this.hovered = found;
      this.details.replaceChildren(...detailsOf(this.store, found, this.time.callsNs));
      this.redraw();
    }
    placeTooltip(this.details, clientX, clientY);
  }

  private leave(): void {
    this.pointer = undefined;
    this.hide();
  }

  private hide(): void {
    hideTooltip(this.details);
    if (this.hovered) {
      this.hovered = null;
      this.redraw();
    }
  }

  /** The wheel scrolls the page unless Ctrl is pressed or the timeline has the focus. */
  private wheel(event: WheelEvent): void {
    const { deltaX, deltaY, deltaMode, offsetX } = event;
    const unit = deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : LINE;
    const isMeant = event.ctrlKey || event.metaKey || event.altKey;
    if (!isMeant && document.activeElement !== this.canvas) {
      return;
    }
    event.preventDefault();
    if (!isMeant && Math.abs(deltaX) > Math.abs(deltaY)) {
      this.time.pan(deltaX * unit * this.geometry().pixel);
      this.redraw();
    } else {
      this.zoomAt(Math.exp(deltaY * unit * WHEEL), offsetX);
    }
  }

  /** Zooms to the selected call, or else selects a call near the middle. */
  private enter(): void {
    const { store: { calls, selected }, time } = this;
    if (selected === null) {
      this.store.select(this.neighbour((time.from + time.to) / 2, 1));
    } else {
      time.center(calls.start(selected), calls.start(selected) + calls.duration(selected));
    }
  }

  /** The next (1) or previous (-1) call that passes the filter; null: none. */
  private neighbour(from: number, step: 1 | -1): number | null {
    const { store: { calls, selected }, store, time } = this;
    let row = selected !== null ? selected + step : step > 0 ? 0 : calls.length - 1;
    const isOutside = (): boolean =>
      selected === null && (step > 0 ? calls.start(row) < from : calls.start(row) > time.to);
    while (row >= 0 && row < calls.length && (isOutside() || !store.shows(row))) {
      row += step;
    }
    return row >= 0 && row < calls.length ? row : null;
  }

  /** Shows or hides the keys; while the canvas has the keyboard's focus, they are shown anyway. */
  private help(): void {
    const isShown = this.hint.classList.toggle('jaxcb-timeline-hint-shown');
    this.question.setAttribute('aria-expanded', String(isShown));
  }

  /** Marks a range and shows its figures; `isChosen`: the user does not drag it any more. */
  private mark(range: Range | null, isChosen = true): void {
    this.range = range;
    this.rangeBox.hidden = !range;
    const isFiltered = !this.store.showsAll();
    const words = range && rangeWords(range, this.tracks.figures(range, isChosen), isFiltered);
    setText(this.rangeWords, words ?? '');
    this.redraw();
  }

  private zoomToRange(): void {
    this.time.show(...this.range!);
    this.redraw();
  }

  private zoomAt(factor: number, x?: number): void {
    const at = this.geometry();
    const middle = (this.time.from + this.time.to) / 2;
    this.time.zoom(factor, x === undefined ? middle : at.ns(Math.max(x, at.gutter)));
    this.hide();
    this.redraw();
  }

  private all(): void {
    this.time.all();
    this.hide();
    this.redraw();
  }

  private choose(layout: Partial<Layout>): void {
    Object.assign(this.store.layout, layout);
    this.fit();
    this.redraw();
  }

  private changed(change: Change): void {
    const { selected, calls } = this.store;
    if (change === 'calls') {
      this.grow();
    } else if (change === 'filter') {
      this.hide();
    }
    if (change !== 'selected') {
      this.tracks.forget();
      this.mark(this.range);
    }
    if (change === 'selected' || change === 'labels') {
      const words = selected === null ? '' : callLine(this.store, selected, this.time.callsNs);
      setText(this.selected, words);
    }
    if (change === 'selected' && selected !== null) {
      this.time.reveal(calls.start(selected), calls.start(selected) + calls.duration(selected));
      const at = this.geometry();
      const band = at.firstThread + this.tracks.threads.indexOf(calls.thread(selected));
      if (at.top(band) < AXIS) {
        this.scroller.scrollTop = band * at.band;
      } else if (at.top(band) + at.band > at.height) {
        this.scroller.scrollTop += at.top(band) + at.band - at.height;
      }
    }
    this.redraw();
  }

  private grow(): void {
    const { calls, labels, nowNs } = this.store;
    this.complete = this.tracks.grow();
    const last = calls.length ? calls.start(calls.length - 1) : 0;
    const compilations = labels.compilations.map(each => [each.start_ns, endOf(each)] as const);
    this.time.grow(Math.max(this.tracks.end, last, nowNs), this.tracks.start, compilations);
    this.fit();
  }

  /** Sets the height, in which only some of the bands may be visible at once. */
  private fit(): void {
    const { band, least, most, shown } = this.heights;
    const visible = AXIS + shown + 2;
    this.canvas.style.height = `${visible}px`;
    this.scroller.style.maxHeight = `${visible}px`;
    this.room.style.height = `${Math.max(band * this.bands - shown, 0)}px`;
    set(this.grip, {
      'aria-valuemin': least,
      'aria-valuemax': most,
      'aria-valuenow': shown,
      'aria-valuetext': `${shown} pixels, ${band} each lane`
    });
  }

  /** The band of the first thread; a band of compilations may be above it. */
  private get firstThread(): number {
    return this.store.labels.compilations.length ? 1 : 0;
  }

  private get bands(): number {
    return this.firstThread + this.tracks.threads.length;
  }

  private get heights() {
    return heightsOf(this.bands, this.store.layout.height);
  }

  private geometry(): Geometry {
    const { canvas, scroller, store, bands, firstThread } = this;
    const names = this.tracks.threads.slice(0, MOST_NAMES).map(each => threadName(store, each));
    const letters = Math.max(0, ...names.map(name => name.length));
    const { clientWidth, clientHeight } = canvas;
    const { scrollTop } = scroller;
    const { band } = this.heights;
    return new Geometry(
      clientWidth, clientHeight, scrollTop, bands, firstThread, letters, this.time, band
    );
  }

  private hit(x: number, y: number): Hit | null {
    return hit(this.store, this.tracks, this.geometry(), x, y);
  }

  /** The time at a pixel; beside the plot, the time at its edge. */
  private timeAt(x: number): number {
    return Math.min(Math.max(this.geometry().ns(x), this.time.from), this.time.to);
  }

  private redraw(): void {
    this.frameAsked ||= requestAnimationFrame(() => {
      this.frameAsked = 0;
      if (!this.complete) {
        this.grow();
        this.redraw();
      }
      this.draw();
    });
  }

  private draw(): void {
    const { canvas, colours, hovered, range, ramp, store, time, tracks } = this;
    const { layout } = store;
    layout.zoom = time.zoomed ? [time.from, time.to] : null;
    Object.entries(colours).forEach(([name, each]) =>
      each.setAttribute('aria-pressed', String(name === layout.colourBy))
    );
    ramp.hidden = layout.colourBy === 'site';
    this.outlined.hidden = !tracks.all.flat().some(track => track.crossings);
    const words = summary(store, tracks);
    if (canvas.getAttribute('aria-label') !== words) {
      canvas.setAttribute('aria-label', words);
    }
    const extremes = ramp.hidden ? null : tracks.extremes([time.from, time.to]);
    if (extremes && extremes.some((ns, end) => ns !== this.ramped[end])) {
      this.ramped = extremes;
      ramp.replaceChildren(...rampSwatches(extremes));
    }
    const at = this.geometry();
    const pen = penOf(canvas, at);
    if (pen) {
      const theme = themeOf(canvas);
      const colouring = ramp.hidden ? bySite(store, theme) : byDuration(theme, extremes ?? [0, 0]);
      new Picture(pen, at, theme, store, tracks, colouring).paint(hovered?.row ?? null, range);
    }
  }
}

function titled(sign: string, title: string, act: () => void): HTMLElement {
  return button({ title, 'aria-label': title }, act, sign);
}

/** Describes the picture as text. */
function summary({ calls, labels }: Store, { threads, end, failures }: Tracks): string {
  const { notFinite, compilations } = labels;
  const over = counted(threads.length, 'thread');
  return [
    `Timeline of ${callWords(calls.length)} on ${over} in ${timeWords(end)}`,
    failures > 0 && `${numberWords(failures)} failed`,
    notFinite.size > 0 && `${numberWords(notFinite.size)} ${phrases.words.not_finite}`,
    compilations.length > 0 && counted(compilations.length, 'compilation')
  ].filter(Boolean).join(', ');
}
