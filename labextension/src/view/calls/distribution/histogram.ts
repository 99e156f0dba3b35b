/** A small histogram of the durations of one site, whose bars filter the calls. */

import type { Durations } from '../../data/filter.js';
import type { Store } from '../../data/store.js';
import { callWords, numberWords, someOf, timeWords } from '../../data/words.js';
import { h, svg } from '../../dom/elements.js';
import { hideTooltip, placeTooltip } from '../../dom/tooltip.js';
import { onKeys, onPress, type Press } from '../input.js';
import { binOf, type Figures, type SiteFigures } from './figures.js';

const BAR = 10; // units of the picture, which is stretched to the width of the column
const GAP = 1.5;
const HIGH = 24;
const LEAST = 2.5; // the height of a bar for one call, which must be visible

export class Histogram {
  readonly node: HTMLElement;
  private readonly lit = svg('path', { class: 'jaxcb-histogram-shown' });
  private readonly mark = svg('rect', { class: 'jaxcb-histogram-mark', height: HIGH, y: 0 });
  private readonly tallest: number;
  private readonly last: number; // bin
  private shown: Uint32Array;
  private at: number; // the bin that keys move from
  private anchor: number | null = null; // the other end of a range that is being chosen

  /** Args: box: the tooltip. */
  constructor(
    private readonly store: Store,
    private readonly whole: Figures,
    private readonly figures: SiteFigures,
    name: string,
    private readonly box: HTMLElement
  ) {
    const { bins } = figures;
    this.shown = bins;
    this.last = bins.length - 1;
    this.tallest = Math.max(...bins, 1);
    this.at = bins.indexOf(this.tallest);
    const picture = {
      class: 'jaxcb-histogram-picture',
      viewBox: `0 0 ${BAR * bins.length} ${HIGH}`,
      preserveAspectRatio: 'none',
      'aria-hidden': 'true'
    };
    const all = svg('path', { class: 'jaxcb-histogram-all', d: this.bars(bins) });
    this.node = h('div', {
      class: 'jaxcb-histogram',
      role: 'slider',
      tabindex: 0,
      'aria-label': `Durations of ${name}`,
      'aria-valuemin': 0,
      'aria-valuemax': this.last
    });
    this.node.append(svg('svg', picture, all, this.lit, this.mark));
    this.move(this.at);
    const { node } = this;
    const hover = ({ clientX, clientY }: PointerEvent): void => {
      const { left, width } = node.getBoundingClientRect();
      this.move(Math.floor(((clientX - left) / width) * (this.last + 1)));
      this.describe(clientX, clientY);
    };
    const down = (event: PointerEvent): Press => {
      hover(event);
      this.anchor = this.at;
      return { move: hover, up: () => this.choose() };
    };
    onPress(node, down, hover);
    for (const type of ['pointerleave', 'pointercancel', 'blur']) {
      node.addEventListener(type, () => {
        this.anchor = null;
        node.classList.remove('jaxcb-histogram-active');
        this.drawMark();
        hideTooltip(this.box);
      });
    }
    node.addEventListener('focus', () => node.matches(':focus-visible') && this.describe());
    onKeys(node, ({ key, shiftKey }) => {
      const { at, last } = this;
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[key];
      if (to !== undefined) {
        this.anchor = shiftKey ? (this.anchor ?? at) : null;
        this.move(to);
        this.describe();
      } else if (key === 'Enter' || key === ' ') {
        this.choose();
      } else if (key === 'Escape') {
        this.narrow(null);
      } else {
        return false;
      }
      return true;
    });
  }

  /** Draws the calls that pass the filter, and marks the filter's range of durations. */
  draw(shown: Uint32Array): void {
    this.shown = shown;
    this.lit.setAttribute('d', this.bars(shown));
    this.drawMark();
  }

  /** The range by which the calls of this site are filtered; null: none. */
  private get chosen(): Durations | null {
    const { site, durations } = this.store.filter;
    return site === null || site === this.figures.site ? durations : null;
  }

  private bars(bins: Uint32Array): string {
    const bars = [...bins].map((calls, bin) => {
      const high = Math.max((calls / this.tallest) * HIGH, LEAST).toFixed(2);
      return calls && `M${BAR * bin + GAP / 2} ${HIGH}v-${high}h${BAR - GAP}V${HIGH}z`;
    });
    return bars.filter(Boolean).join('');
  }

  private move(bin: number): void {
    this.at = Math.min(Math.max(bin, 0), this.last);
    this.node.setAttribute('aria-valuenow', String(this.at));
    this.node.setAttribute('aria-valuetext', this.words().join(': '));
    this.drawMark();
  }

  /** Describes the marked bars beside a point, or else the last of them. */
  private describe(x?: number, y?: number): void {
    const { left, width, bottom } = this.node.getBoundingClientRect();
    const middle = left + ((this.at + 0.5) / (this.last + 1)) * width;
    this.node.classList.add('jaxcb-histogram-active');
    this.drawMark();
    const [range, ...words] = this.words();
    this.box.replaceChildren(h('strong', {}, range), ...words.map(each => h('p', {}, each)));
    placeTooltip(this.box, x ?? middle, y ?? bottom - 8);
  }

  /** Shows only the calls of the marked bars; again: all calls. Ignores a range without calls. */
  private choose(): void {
    const { range } = this;
    const again = String(range) === String(this.chosen);
    const calls = this.count(this.figures.bins);
    this.anchor = null;
    if (again || calls > 0) {
      this.narrow(again ? null : range);
    }
  }

  private narrow(durations: Durations | null): void {
    const { figures, store: { filter }, whole } = this;
    const site = durations && whole.sites.length > 1 ? figures.site : filter.site;
    this.store.narrow({ ...filter, site, durations });
  }

  private get marked(): [first: number, last: number] {
    const other = this.anchor ?? this.at;
    return [Math.min(this.at, other), Math.max(this.at, other)];
  }

  private get range(): Durations {
    const [first, last] = this.marked;
    return [this.whole.edges[first]!, this.whole.edges[last + 1]!];
  }

  private count(bins: Uint32Array): number {
    const [first, last] = this.marked;
    return bins.subarray(first, last + 1).reduce((sum, calls) => sum + calls, 0);
  }

  /** `20 µs – 25 µs`, `1,234 of 20,000 calls`. */
  private words(): string[] {
    const calls = this.count(this.figures.bins);
    const shown = this.count(this.shown);
    const some = calls ? someOf(calls, this.figures.calls) : callWords(0);
    const words = [rangeWords(this.range), some];
    return shown < calls ? [...words, `${numberWords(shown)} shown`] : words;
  }

  private drawMark(): void {
    const { chosen, mark, node, whole: { edges } } = this;
    let [first, last] = this.marked;
    if (chosen && !node.classList.contains('jaxcb-histogram-active')) {
      const after = edges.findIndex(edge => edge >= chosen[1]);
      [first, last] = [binOf(edges, chosen[0]), after < 0 ? this.last : after - 1];
    }
    mark.setAttribute('x', String(BAR * first));
    mark.setAttribute('width', String(BAR * Math.max(last + 1 - first, 1)));
    node.classList.toggle('jaxcb-histogram-chosen', chosen !== null);
  }
}

/** `20 µs – 25 µs`. */
export function rangeWords([from, to]: Durations): string {
  return `${timeWords(from)} – ${timeWords(to)}`;
}
