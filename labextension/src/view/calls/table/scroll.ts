/** Scrolls through more rows than fit into the maximum height of an element. */

export const ROW = 24;
const HIGHEST = 6_000_000; // pixels; Firefox stops at about 17 million

/**
 * Maps the position of the scroll bar to rows.
 *
 * Up to `HIGHEST` pixels the two are equal. Beyond that, jumps of the scroll bar are scaled, but small
 * steps are not, so that no row is skipped.
 */
export class Scroll {
  rows = 0;
  height = ROW; // of the visible part
  private top = 0; // unscaled position, in pixels
  private bar = 0; // position of the scroll bar

  /** The height of the scrolled element. */
  get room(): number {
    return Math.min(this.whole, HIGHEST);
  }

  /** The first visible position, and the position after the last. */
  get visible(): [number, number] {
    const first = Math.floor(this.top / ROW);
    const last = Math.ceil((this.top + this.height) / ROW);
    return [Math.min(first, this.rows), Math.min(last, this.rows)];
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
    const by = bar - this.bar;
    const little = Math.abs(by) <= this.height && bar > 0 && bar < this.room - this.height;
    this.top = this.scaled && little ? this.top + by : bar * this.scale;
    this.bar = bar;
    this.clamp();
  }

  /** Handles a change of the number of rows or of the height. */
  fit(rows: number, height: number): void {
    this.rows = rows;
    this.height = height;
    this.clamp();
  }

  /** The scroll position that makes a row visible; null if it is visible. */
  reveal(place: number): number | null {
    const top = place * ROW;
    if (top < this.top) {
      this.top = top;
    } else if (top + ROW > this.top + this.height) {
      this.top = top + ROW - this.height;
    } else {
      return null;
    }
    this.clamp();
    this.bar = Math.round(this.top / this.scale);
    return this.bar;
  }

  private get whole(): number {
    return this.rows * ROW;
  }

  private get scaled(): boolean {
    return this.whole > HIGHEST;
  }

  private get scale(): number {
    return this.scaled ? (this.whole - this.height) / (this.room - this.height) : 1;
  }

  private clamp(): void {
    this.top = Math.min(Math.max(this.top, 0), Math.max(this.whole - this.height, 0));
  }
}
