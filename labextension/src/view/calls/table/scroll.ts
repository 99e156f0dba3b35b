/** Scrolls through more rows than fit into the maximum height of an element. */

export const ROW = 24;
const HIGHEST = 6_000_000; // pixels; Firefox stops at about 17 million

/**
 * Maps the position of the scroll bar to rows.
 *
 * Up to `HIGHEST` pixels the two are equal. Beyond that, jumps of the scroll bar are scaled, but
 * small steps are not, so that no row is skipped.
 */
export class Scroll {
  private rows = 0;
  private height = ROW; // of the visible part
  private top = 0; // unscaled position, in pixels
  private bar = 0; // position of the scroll bar

  /** The height of the scrolled element. */
  get room(): number {
    return Math.min(this.rows * ROW, HIGHEST);
  }

  /** The first visible position, and the position after the last. */
  get visible(): [number, number] {
    const last = Math.ceil((this.top + this.height) / ROW);
    return [Math.min(Math.floor(this.top / ROW), this.rows), Math.min(last, this.rows)];
  }

  /** Number of rows that Page Up and Page Down move by. */
  get page(): number {
    return Math.max(Math.floor(this.height / ROW) - 1, 1);
  }

  /** Where a row is in the scrolled element. */
  y(place: number): number {
    return this.bar + place * ROW - this.top;
  }

  /** Handles a move of the scroll bar. */
  scrolled(bar: number): void {
    const [by, end] = [bar - this.bar, this.room - this.height];
    const isStep = this.scale > 1 && Math.abs(by) <= this.height && bar > 0 && bar < end;
    this.bar = bar;
    this.moveTo(isStep ? this.top + by : bar * this.scale);
  }

  /** Handles a change of the number of rows or of the height. */
  fit(rows: number, height: number): void {
    this.rows = rows;
    this.height = height;
    this.moveTo(this.top);
  }

  /** The scroll position that makes a row visible; null if it is visible. */
  reveal(place: number): number | null {
    const [first, last] = [place * ROW + ROW - this.height, place * ROW];
    if (this.top >= first && this.top <= last) {
      return null;
    }
    this.moveTo(this.top > last ? last : first);
    this.bar = Math.round(this.top / this.scale);
    return this.bar;
  }

  private get scale(): number {
    const whole = this.rows * ROW;
    return whole > HIGHEST ? (whole - this.height) / (HIGHEST - this.height) : 1;
  }

  private moveTo(top: number): void {
    this.top = Math.min(Math.max(top, 0), Math.max(this.rows * ROW - this.height, 0));
  }
}
