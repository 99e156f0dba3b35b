/** The range of time that a timeline shows. */

const SHORTEST_NS = 20;
const BEFORE_SHARE = 0.25; // of the calls' time, for what came before them
const REVEALED_SHARE = 0.2; // of the width, for a revealed call

/** Shows the whole recording until the user zooms; then it keeps the range. */
export class TimeWindow {
  from = 0;
  to = SHORTEST_NS;
  zoomed = false;
  callsNs = SHORTEST_NS; // from the first call to the end of the last
  private opening = 0; // where the first view begins
  private first = 0; // of calls and compilations
  private last = SHORTEST_NS;

  get span(): number {
    return this.to - this.from;
  }

  /** The longest range that can be shown. */
  get whole(): number {
    return this.last - this.first;
  }

  /**
   * The calls began at `start` and now end at `end`; there are also compilations.
   *
   * The first view has room for the calls, and little for the compilations before them, which may
   * take a hundred times as long; none if they ended long before.
   */
  grow(end: number, start = 0, compilations: readonly (readonly [number, number])[] = []): void {
    this.callsNs = Math.max(end, SHORTEST_NS);
    this.first = Math.min(start, 0, ...compilations.map(([from]) => from));
    this.last = Math.max(this.callsNs, ...compilations.map(([, to]) => to));
    const earliest = -BEFORE_SHARE * this.callsNs;
    const before = compilations.filter(([from]) => from < 0);
    const isLongAgo = before.length > 0 && before.every(([, to]) => to < earliest);
    this.opening = isLongAgo ? 0 : Math.max(this.first, earliest);
    if (!this.zoomed) {
      [this.from, this.to] = [this.opening, this.callsNs];
    }
  }

  /** Shows everything; again: the first view. */
  all(): void {
    if (this.span === this.whole) {
      this.zoomed = false;
      [this.from, this.to] = [this.opening, this.callsNs];
    } else {
      this.show(this.first, this.last);
    }
  }

  show(from: number, to: number): void {
    const span = Math.min(Math.max(to - from, SHORTEST_NS), this.whole);
    this.zoomed = span < this.whole;
    this.from = Math.min(Math.max(from, this.first), this.last - span);
    this.to = this.from + span;
  }

  /** Makes `factor` times as much visible, keeping the position of `ns`. */
  zoom(factor: number, ns: number): void {
    const span = Math.min(Math.max(this.span * factor, SHORTEST_NS), this.whole);
    const share = (ns - this.from) / this.span;
    this.show(ns - share * span, ns - share * span + span);
  }

  pan(ns: number): void {
    if (this.span < this.whole) {
      this.show(this.from + ns, this.to + ns);
    }
  }

  /** Pans to make a call visible, if needed. */
  reveal(start: number, end: number): void {
    if (end < this.from || start > this.to) {
      const center = (start + end) / 2;
      this.show(center - this.span / 2, center + this.span / 2);
    }
  }

  /** Centers a call and zooms in on it. */
  center(start: number, end: number): void {
    const span = Math.min(this.span, Math.max(end - start, SHORTEST_NS) / REVEALED_SHARE);
    this.show((start + end - span) / 2, (start + end + span) / 2);
  }
}
