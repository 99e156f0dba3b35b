/** Draws the lanes of a profile on one time axis. */

import { kindColour } from '../colours.js';
import type { Profile } from '../data/schema.js';
import { cut, paintAxis, paintGround, paintNames } from '../calls/timeline/canvas.js';
import { LEAST_LABELLED, shadeOf } from '../calls/timeline/canvas.js';
import type { Geometry } from '../calls/timeline/canvas.js';
import { inkOn, themeOf, type Theme } from '../calls/timeline/canvas.js';
import { type Spans, walk } from '../calls/timeline/tracks.js';
import type { Lane } from './lane.js';
import type { Mark } from './mark.js';
import { partName } from './words.js';

/** The settings of one drawing. */
export interface Drawing {
  readonly pen: CanvasRenderingContext2D;
  readonly at: Geometry;
  readonly profile: Profile;
  readonly mark: Mark | null; // everything else is dimmed
}

/** Draws lanes, axis and names in the theme around `node`. */
export function paintLanes(node: Element, drawing: Drawing, lanes: readonly Lane[]): void {
  const { pen, at, profile } = drawing;
  const theme = themeOf(node);
  const style = getComputedStyle(node);
  const fills = profile.kinds.map(
    ({ id }) => style.getPropertyValue(kindColour(id)).trim() || theme.mixed
  );
  paintGround(pen, at, theme);
  pen.font = `11px ${theme.font}`;
  pen.textBaseline = 'middle';
  pen.textAlign = 'left';
  lanes.forEach((lane, band) => {
    const top = at.top(band) + at.barTop(0);
    walk(lane, at.scale, new Painter(drawing, theme, fills, lane, top));
  });
  pen.globalAlpha = 1;
  paintAxis(pen, at, theme);
  paintNames(pen, at, theme, band => lanes[band]!.name);
}

class Painter implements Spans {
  constructor(
    private readonly drawing: Drawing,
    private readonly theme: Theme,
    private readonly fills: readonly string[], // by kind
    private readonly lane: Lane,
    private readonly top: number
  ) {}

  bar(place: number, left: number, right: number): void {
    const { pen, at, profile } = this.drawing;
    const x = at.gutter + Math.max(left, 0);
    const end = at.gutter + Math.min(right, at.plot);
    const width = Math.max(end - x - (right - left > 4 ? 1 : 0), 1);
    const part = this.lane.part(place);
    const fill = this.fill(part);
    this.rectangle(x, width, fill, 1);
    if (width >= LEAST_LABELLED && fill !== this.theme.dimmed) {
      pen.fillStyle = inkOn(fill, pen);
      const words = cut(pen, partName(profile, profile.parts[part]!), width - 9);
      pen.fillText(words, x + 5, this.top + at.barHeight(0) / 2 + 0.5);
    }
  }

  shade(place: number, next: number, x: number): void {
    const { at } = this.drawing;
    const [part, busy] = this.longest(place, next);
    this.rectangle(at.gutter + Math.max(x, 0), 1, this.fill(part), shadeOf(busy / at.pixel));
  }

  /** The part with most of the time from `place` to before `next`, and the time of all parts. */
  private longest(place: number, next: number): [part: number, busy: number] {
    const times = new Map<number, number>();
    let busy = 0;
    for (let each = place; each < next; each++) {
      const duration = this.lane.end(each) - this.lane.start(each);
      const part = this.lane.part(each);
      times.set(part, (times.get(part) ?? 0) + duration);
      busy += duration;
    }
    const [part] = [...times].reduce((best, each) => (each[1] > best[1] ? each : best));
    return [part, busy];
  }

  private fill(part: number): string {
    const { profile, mark } = this.drawing;
    const { kind } = profile.parts[part]!;
    const lit = mark === null || (mark.kind === kind && (mark.part === null || mark.part === part));
    return lit ? this.fills[kind]! : this.theme.dimmed;
  }

  private rectangle(x: number, width: number, colour: string, alpha: number): void {
    const { pen, at } = this.drawing;
    pen.globalAlpha = alpha;
    pen.fillStyle = colour;
    pen.fillRect(x, this.top, width, at.barHeight(0));
    pen.globalAlpha = 1;
  }
}
