/** Scrolls through more rows than a browser lets an element be high. */

export const ROW = 24;
const HIGHEST = 6_000_000; // pixels; Firefox stops at about 17 million

/**
 * Where the rows are when the scroll bar is at a place.
 *
 * Up to `HIGHEST` pixels it is the same place. Beyond, a jump of the scroll bar is scaled, and
 * scrolling by a little is not, so that no row is passed over.
 */
export class Scroll {
  rows = 0;
  height = ROW; // of what is visible
  private top = 0; // in pixels, as if all rows had their height
  private bar = 0; // what the scroll bar says

  /** How high the scrolled element is to be. */
  get room(): number {
    return Math.min(this.whole, HIGHEST);
  }

  /** The first place that is visible, and the one after the last. */
  get visible(): [number, number] {
    const first = Math.floor(this.top / ROW);
    const last = Math.ceil((this.top + this.height) / ROW);
    return [Math.min(first, this.rows), Math.min(last, this.rows)];
  }

  /** Rows that a key for a page moves by. */
  get page(): number {
    return Math.max(Math.floor(this.height / ROW) - 1, 1);
  }

  /** Where a row is in the scrolled element. */
  y(place: number): number {
    return this.bar + place * ROW - this.top;
  }

  /** The scroll bar moved. */
  scrolled(bar: number): void {
    const by = bar - this.bar;
    const little = Math.abs(by) <= this.height && bar > 0 && bar < this.room - this.height;
    this.top = this.scaled && little ? this.top + by : bar * this.scale;
    this.bar = bar;
    this.clamp();
  }

  /** The number of rows or the height changed. */
  fit(rows: number, height: number): void {
    this.rows = rows;
    this.height = height;
    this.clamp();
  }

  /** Where the scroll bar has to go for a row to be visible; null: it is. */
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
