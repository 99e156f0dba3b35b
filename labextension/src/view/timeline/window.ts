/** The range of time that a timeline shows. */

const SHORTEST_NS = 20;
const REVEALED_SHARE = 0.2; // of the width, for a revealed call

/** Shows the whole recording until the user zooms; then it keeps the range. */
export class TimeWindow {
  from = 0;
  to = SHORTEST_NS;
  zoomed = false;
  private end = SHORTEST_NS;

  get span(): number {
    return this.to - this.from;
  }

  /** The duration of the whole recording. */
  get whole(): number {
    return this.end;
  }

  /** The recording now ends at `end`. */
  grow(end: number): void {
    this.end = Math.max(end, SHORTEST_NS);
    if (!this.zoomed) {
      this.to = this.end;
    }
  }

  all(): void {
    this.zoomed = false;
    this.from = 0;
    this.to = this.end;
  }

  show(from: number, to: number): void {
    const span = Math.min(Math.max(to - from, SHORTEST_NS), this.end);
    this.zoomed = span < this.end;
    this.from = Math.min(Math.max(from, 0), this.end - span);
    this.to = this.from + span;
  }

  /** Makes `factor` times as much visible, keeping the position of `ns`. */
  zoom(factor: number, ns: number): void {
    const span = Math.min(Math.max(this.span * factor, SHORTEST_NS), this.end);
    const share = (ns - this.from) / this.span;
    this.show(ns - share * span, ns - share * span + span);
  }

  pan(ns: number): void {
    if (this.zoomed) {
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
