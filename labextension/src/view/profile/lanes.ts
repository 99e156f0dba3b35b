/** The block, and on request its threads and devices, on one time axis. */

import { sinceFirstCall } from '../data/call.js';
import type { Profile } from '../data/schema.js';
import { counted, numberWords, timeWords } from '../data/words.js';
import { button, h } from '../dom/elements.js';
import { AXIS, BAND, Geometry, type TimeRange } from '../calls/timeline/canvas.js';
import { watchLook } from '../calls/timeline/canvas.js';
import { penOf } from '../calls/timeline/canvas.js';
import { factList, hideTooltip, placeTooltip } from '../dom/tooltip.js';
import { Lane } from './lane.js';
import type { Mark } from './mark.js';
import { paintLanes } from './picture.js';
import { partName, wallShare } from './words.js';

const REACH = 4; // tolerance beside a span, in pixels
const SHORTEST_NS = 20; // that the axis can show

export class Lanes {
  readonly node: HTMLElement;
  private readonly canvas = h('canvas', { class: 'jaxcb-profile-canvas', role: 'img' });
  private readonly lanes: readonly Lane[];
  private readonly range: TimeRange;
  private mark: Mark | null = null;
  private expanded = false;
  private frameAsked = 0;
  private readonly forget: () => void;

  /** Args: box: the tooltip. */
  constructor(
    private readonly profile: Profile,
    private readonly box: HTMLElement
  ) {
    const zero = profile.start_ns ?? 0;
    const span = Math.max(profile.wall_ns, SHORTEST_NS);
    this.range = { from: zero, to: zero + span, span };
    this.lanes = profile.lanes.map(({ name, spans }) => new Lane(name, spans, zero));
    const since = profile.start_ns === null ? 'the start' : 'the first call';
    const foot = h(
      'div',
      { class: 'jaxcb-profile-foot' },
      this.lanes.length > 1 && this.button(),
      h('span', { class: 'jaxcb-muted' }, `time since ${since}`)
    );
    this.node = h('div', { class: 'jaxcb-profile-lanes' }, this.canvas, foot);
    this.canvas.addEventListener('pointermove', this.hover);
    this.canvas.addEventListener('pointerleave', () => hideTooltip(box));
    this.forget = watchLook(this.node, () => this.redraw());
    this.fit();
  }

  /** Dims everything else; null: nothing. */
  highlight(mark: Mark | null): void {
    this.mark = mark;
    this.redraw();
  }

  dispose(): void {
    this.forget();
    cancelAnimationFrame(this.frameAsked);
  }

  private get shown(): readonly Lane[] {
    return this.expanded ? this.lanes : this.lanes.slice(0, 1);
  }

  private button(): HTMLElement {
    const count = numberWords(this.lanes.length - 1);
    const words = `threads and devices (${count})`;
    const act = (): void => {
      this.expanded = !this.expanded;
      node.setAttribute('aria-expanded', String(this.expanded));
      node.textContent = `${this.expanded ? 'Hide' : 'Show'} ${words}`;
      this.fit();
    };
    const node = button({ class: 'jaxcb-link', 'aria-expanded': 'false' }, act, `Show ${words}`);
    return node;
  }

  private fit(): void {
    const { length } = this.shown;
    this.canvas.style.height = `${AXIS + BAND * length + 2}px`;
    const words = `Timeline of ${timeWords(this.profile.wall_ns)} on ${counted(length, 'lane')}`;
    this.canvas.setAttribute('aria-label', `${words}; the table has the figures`);
    this.redraw();
  }

  private geometry(): Geometry {
    const { clientWidth, clientHeight } = this.canvas;
    const letters = this.lanes.reduce((most, { name }) => Math.max(most, name.length), 0);
    const { length } = this.shown;
    return new Geometry(clientWidth, clientHeight, 0, length, 0, letters, this.range);
  }

  private redraw(): void {
    if (this.frameAsked === 0) {
      this.frameAsked = requestAnimationFrame(() => {
        this.frameAsked = 0;
        const at = this.geometry();
        const pen = penOf(this.canvas, at);
        if (pen) {
          const { profile, mark } = this;
          paintLanes(this.canvas, { pen, at, profile, mark }, this.shown);
        }
      });
    }
  }

  private readonly hover = (event: PointerEvent): void => {
    const { offsetX: x, offsetY: y } = event;
    const at = this.geometry();
    const band = at.bandAt(y);
    const lane = band === null ? undefined : this.shown[band];
    const place = lane?.at(at.ns(x), REACH * at.pixel) ?? null;
    if (!lane || place === null) {
      hideTooltip(this.box);
      return;
    }
    this.describe(lane, place);
    placeTooltip(this.box, event.clientX, event.clientY);
  };

  private describe(lane: Lane, place: number): void {
    const { profile } = this;
    const part = profile.parts[lane.part(place)]!;
    const start = lane.start(place);
    const whole = `${timeWords(part.wall_ns)} · ${wallShare(profile, part.wall_ns)}`;
    const facts = factList([
      ['kind', profile.kinds[part.kind]!.name],
      ['start', sinceFirstCall(start, profile.wall_ns)],
      ['duration', timeWords(lane.end(place) - start)],
      ['in total', whole]
    ]);
    const name = h('strong', {}, [partName(profile, part), part.where].filter(Boolean).join(', '));
    this.box.replaceChildren(name, facts);
  }
}
