/** A small histogram of the durations of one site, whose bars filter the calls. */

import { h, svg } from '../../dom/elements.js';
import type { Durations } from '../../data/filter.js';
import { callWords, numberWords, someOf, timeWords } from '../../data/words.js';
import { binOf } from './bins.js';
import type { SiteFigures } from './figures.js';

const BAR = 10; // units of the picture, which is stretched to the width of the column
const GAP = 1.5;
const HIGH = 24;
const LEAST = 2.5; // the height of a bar for one call, which must be visible

/** What a histogram asks for. */
export interface HistogramActions {
  /** Shows only calls in a range of durations; null: in any. */
  choose(durations: Durations | null): void;
  /** Describes some bars beside a point of the window. */
  describe(words: readonly string[], x: number, y: number): void;
  leave(): void;
}

export class Histogram {
  readonly node: HTMLElement;
  private readonly all = svg('path', { class: 'jaxcb-histogram-all' });
  private readonly lit = svg('path', { class: 'jaxcb-histogram-shown' });
  private readonly mark = svg('rect', { class: 'jaxcb-histogram-mark', height: HIGH, y: 0 });
  private readonly tallest: number;
  private shown: Uint32Array;
  private chosen: Durations | null = null;
  private at: number; // the bar that keys move from
  private anchor: number | null = null; // the other end of a range that is being chosen
  private dragging = false;

  constructor(
    private readonly figures: SiteFigures,
    private readonly edges: readonly number[],
    name: string,
    private readonly actions: HistogramActions
  ) {
    const { bins } = figures;
    this.shown = bins;
    this.tallest = bins.reduce((most, calls) => Math.max(most, calls), 1);
    this.at = bins.indexOf(this.tallest);
    this.node = h('div', {
      class: 'jaxcb-histogram',
      role: 'slider',
      tabindex: 0,
      'aria-label': `Durations of ${name}`,
      'aria-valuemin': 0,
      'aria-valuemax': bins.length - 1
    });
    this.node.append(this.picture());
    this.all.setAttribute('d', this.bars(bins));
    this.listen();
    this.move(this.at);
  }

  private picture(): SVGElement {
    const attributes = {
      class: 'jaxcb-histogram-picture',
      viewBox: `0 0 ${BAR * this.figures.bins.length} ${HIGH}`,
      preserveAspectRatio: 'none',
      'aria-hidden': 'true'
    };
    return svg('svg', attributes, this.all, this.lit, this.mark);
  }

  /** Draws the calls that pass the filter, and marks the filter's range of durations. */
  draw(shown: Uint32Array, chosen: Durations | null): void {
    this.shown = shown;
    this.chosen = chosen;
    this.lit.setAttribute('d', this.bars(shown));
    this.drawMark();
  }

  private bars(bins: Uint32Array): string {
    const bars = [...bins].map((calls, bin) => {
      const high = calls && Math.max((calls / this.tallest) * HIGH, LEAST);
      const wide = BAR - GAP;
      return high ? `M${BAR * bin + GAP / 2} ${HIGH}v${-high.toFixed(2)}h${wide}V${HIGH}z` : '';
    });
    return bars.join('');
  }

  private listen(): void {
    const { node } = this;
    node.addEventListener('pointermove', event => this.hover(event));
    node.addEventListener('pointerdown', event => this.down(event));
    node.addEventListener('pointerup', () => this.up());
    node.addEventListener('pointerleave', () => this.leave());
    node.addEventListener('pointercancel', () => this.leave());
    node.addEventListener('focus', () => node.matches(':focus-visible') && this.describe());
    node.addEventListener('blur', () => this.leave());
    node.addEventListener('keydown', event => this.key(event));
  }

  private hover(event: PointerEvent): void {
    const { left, width } = this.node.getBoundingClientRect();
    this.move(Math.floor(((event.clientX - left) / width) * this.figures.bins.length));
    this.actions.describe(this.words(), event.clientX, event.clientY);
    this.node.classList.add('jaxcb-histogram-active');
  }

  private down(event: PointerEvent): void {
    if (event.button === 0) {
      this.hover(event);
      this.anchor = this.at;
      this.dragging = true;
      this.node.setPointerCapture?.(event.pointerId);
    }
  }

  private up(): void {
    if (this.dragging) {
      this.dragging = false;
      this.choose();
    }
  }

  private leave(): void {
    this.anchor = null;
    this.dragging = false;
    this.node.classList.remove('jaxcb-histogram-active');
    this.drawMark();
    this.actions.leave();
  }

  private key(event: KeyboardEvent): void {
    const last = this.figures.bins.length - 1;
    const { key, shiftKey } = event;
    const to = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last }[key];
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (to !== undefined) {
      this.anchor = shiftKey ? (this.anchor ?? this.at) : null;
      this.move(to);
      this.describe();
    } else if (key === 'Enter' || key === ' ') {
      this.choose();
    } else if (key === 'Escape') {
      this.actions.choose(null);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private move(bin: number): void {
    this.at = Math.min(Math.max(bin, 0), this.figures.bins.length - 1);
    this.node.setAttribute('aria-valuenow', String(this.at));
    this.node.setAttribute('aria-valuetext', this.words().join(': '));
    this.drawMark();
  }

  /** Describes the bar that keys moved to. */
  private describe(): void {
    const { left, width, bottom } = this.node.getBoundingClientRect();
    const x = left + ((this.at + 0.5) / this.figures.bins.length) * width;
    this.node.classList.add('jaxcb-histogram-active');
    this.actions.describe(this.words(), x, bottom - 8);
  }

  /** Shows only the calls of the marked bars; again: all calls. Ignores a range without calls. */
  private choose(): void {
    const [first, last] = this.marked;
    const range: Durations = [this.edges[first]!, this.edges[last + 1]!];
    const again = this.chosen?.[0] === range[0] && this.chosen[1] === range[1];
    const calls = this.count(this.figures.bins);
    this.anchor = null;
    if (again || calls > 0) {
      this.actions.choose(again ? null : range);
    }
  }

  private get marked(): [number, number] {
    const other = this.anchor ?? this.at;
    return [Math.min(this.at, other), Math.max(this.at, other)];
  }

  private count(bins: Uint32Array): number {
    const [first, last] = this.marked;
    return bins.subarray(first, last + 1).reduce((sum, calls) => sum + calls, 0);
  }

  /** `20 µs – 25 µs`, `1,234 of 20,000 calls`. */
  private words(): string[] {
    const [first, last] = this.marked;
    const calls = this.count(this.figures.bins);
    const shown = this.count(this.shown);
    return [
      rangeWords([this.edges[first]!, this.edges[last + 1]!]),
      calls ? someOf(calls, this.figures.calls) : callWords(0),
      ...(shown < calls ? [`${numberWords(shown)} shown`] : [])
    ];
  }

  private drawMark(): void {
    const active = this.node.classList.contains('jaxcb-histogram-active');
    const [first, last] = active || !this.chosen ? this.marked : this.binsOf(this.chosen);
    this.mark.setAttribute('x', String(BAR * first));
    this.mark.setAttribute('width', String(BAR * Math.max(last + 1 - first, 1)));
    this.node.classList.toggle('jaxcb-histogram-chosen', this.chosen !== null);
  }

  private binsOf([from, to]: Durations): [number, number] {
    const after = this.edges.findIndex(edge => edge >= to);
    return [binOf(this.edges, from), after < 0 ? this.figures.bins.length - 1 : after - 1];
  }
}

/** `20 µs – 25 µs`. */
export function rangeWords([from, to]: Durations): string {
  return `${timeWords(from)} – ${timeWords(to)}`;
}
