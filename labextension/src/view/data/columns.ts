/** Host calls in typed arrays, because a million calls are too many for objects. */

import { ROW_BYTES } from './schema.js';
import type { RawCalls } from './unpack.js';

const FIRST_CAPACITY = 1024;

const CROSSING_BYTES = 4;
const UNKNOWN = 0xffffffff;

export const THREADS = 0x10000; // distinct thread numbers in the columns

/** Grows by doubling; times in nanoseconds since the recording's first call. */
export class Calls {
  private rows = 0;
  private unit = 0;
  private starts = new Float64Array(FIRST_CAPACITY);
  private durations = new Float64Array(FIRST_CAPACITY);
  private elements = new Int32Array(FIRST_CAPACITY);
  private variants = new Uint16Array(FIRST_CAPACITY);
  private threads = new Uint16Array(FIRST_CAPACITY);
  private errors = new Uint16Array(FIRST_CAPACITY);
  private crossings = new Uint32Array(FIRST_CAPACITY);

  get length(): number {
    return this.rows;
  }

  /** The resolution of the times, in nanoseconds. */
  get unitNs(): number {
    return this.unit;
  }

  start(row: number): number {
    return this.starts[row]!;
  }

  duration(row: number): number {
    return this.durations[row]!;
  }

  /** Row-major under looped vmaps; -1: no element. */
  element(row: number): number {
    return this.elements[row]!;
  }

  variant(row: number): number {
    return this.variants[row]!;
  }

  thread(row: number): number {
    return this.threads[row]!;
  }

  /** 0: it returned; else 1 + an index into the errors. */
  error(row: number): number {
    return this.errors[row]!;
  }

  /** The number of its crossing; null: it has its own, or it is not known. */
  crossing(row: number): number | null {
    const number = this.crossings[row]!;
    return number === UNKNOWN ? null : number;
  }

  /** How many calls the crossing of a call made, and how long they took together; null: unknown. */
  crossingOf(row: number): { readonly calls: number; readonly duration: number } | null {
    const number = this.crossing(row);
    if (number === null) {
      return null;
    }
    const { crossings } = this;
    const first = crossings.indexOf(number);
    let [calls, end] = [0, 0];
    for (let one = first; one < this.rows && one >= 0; one = crossings.indexOf(number, one + 1)) {
      calls++;
      end = Math.max(end, this.starts[one]! + this.durations[one]!);
    }
    return { calls, duration: end - this.starts[first]! };
  }

  /**
   * Adds rows: all, or those from `first` to before `next`, where `baseNs` is the start of the row
   * before `first`.
   *
   * Throws RangeError if the columns do not have the bytes of all rows, or if the times are not
   * finite.
   */
  append(calls: RawCalls, baseNs = 0, first = 0, next = calls.rows): void {
    const { rows, unit_ns: unitNs, data: raw, crossings } = calls;
    expectBytes(raw, rows, ROW_BYTES);
    if (crossings) {
      expectBytes(crossings, rows, CROSSING_BYTES);
    }
    if (!(unitNs > 0 && unitNs < Infinity && Number.isFinite(baseNs))) {
      throw new RangeError(`invalid times: units of ${unitNs} ns since ${baseNs} ns`);
    }
    this.reserve(this.rows + rows - first);
    this.unit = Math.max(this.unit, unitNs);
    let start = baseNs;
    for (let i = first; i < next; i++) {
      const row = this.rows + i - first;
      start += raw.getUint32(4 * i, true) * unitNs;
      this.starts[row] = start;
      this.durations[row] = raw.getUint32(4 * (rows + i), true) * unitNs;
      this.elements[row] = raw.getInt32(4 * (2 * rows + i), true);
      this.variants[row] = raw.getUint16(12 * rows + 2 * i, true);
      this.threads[row] = raw.getUint16(14 * rows + 2 * i, true);
      this.errors[row] = raw.getUint16(16 * rows + 2 * i, true);
      this.crossings[row] = crossings ? crossings.getUint32(4 * i, true) : UNKNOWN;
    }
    this.rows += next - first;
  }

  private reserve(rows: number): void {
    if (rows <= this.starts.length) {
      return;
    }
    const capacity = Math.max(rows, 2 * this.starts.length);
    this.starts = grown(this.starts, new Float64Array(capacity));
    this.durations = grown(this.durations, new Float64Array(capacity));
    this.elements = grown(this.elements, new Int32Array(capacity));
    this.variants = grown(this.variants, new Uint16Array(capacity));
    this.threads = grown(this.threads, new Uint16Array(capacity));
    this.errors = grown(this.errors, new Uint16Array(capacity));
    this.crossings = grown(this.crossings, new Uint32Array(capacity));
  }
}

function expectBytes(column: DataView, rows: number, each: number): void {
  if (column.byteLength !== rows * each) {
    throw new RangeError(`${rows} calls take ${rows * each} bytes, not ${column.byteLength}`);
  }
}

function grown<T extends { set(other: T): void }>(old: T, wider: T): T {
  wider.set(old);
  return wider;
}
