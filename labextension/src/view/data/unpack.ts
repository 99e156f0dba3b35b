/** Unpacks the host calls saved in an output. */

import { pause } from './pause.js';
import type { SavedCalls } from './schema.js';

/** Host calls in the raw layout of `SavedCalls`. */
export interface RawCalls {
  readonly rows: number;
  readonly unit_ns: number;
  readonly data: DataView;
  readonly crossings?: DataView | undefined; // absent: every call has its own, or they are not known
  readonly crossingsProblem?: string | undefined; // why saved crossings cannot be read
}

const MOST_ROWS = 2_000_000; // as a saved page has; a notebook saves 20,000
const LONGEST_UNIT_NS = 1e9; // keeps every sum of times finite
const COLUMNS: readonly number[] = [4, 4, 4, 2, 2, 2]; // bytes of each
const CROSSINGS: readonly number[] = [4];
const DECODED_AT_ONCE = 4_000_000; // characters, a multiple of four
const SLICE_BYTES = 4096; // inflates to at most 4 MB, to detect a zip bomb before it fills memory

/**
 * Unpacks untrusted data. Throws Error with a one-sentence message if the calls are malformed; if
 * only their crossings are, the calls have a problem instead.
 */
export async function unpack(saved: SavedCalls): Promise<RawCalls> {
  const { rows, unit_ns, zlib, crossings } = saved;
  if (!Number.isInteger(rows) || rows < 0 || rows > MOST_ROWS) {
    throw new Error(
      `The saved calls have ${short(rows)} rows, not 0 to ${MOST_ROWS.toLocaleString('en-US')}.`
    );
  }
  if (!Number.isFinite(unit_ns) || unit_ns <= 0 || unit_ns > LONGEST_UNIT_NS) {
    throw new Error(`The saved calls have an invalid time unit: ${short(unit_ns)}.`);
  }
  const calls = { rows, unit_ns, data: await columnsOf('calls', zlib, rows, COLUMNS) };
  if (!crossings) {
    return calls;
  }
  try {
    return { ...calls, crossings: await columnsOf('crossings', crossings, rows, CROSSINGS) };
  } catch (error) {
    return { ...calls, crossingsProblem: (error as Error).message };
  }
}

async function columnsOf(
  name: string, // in messages
  zlib: unknown,
  rows: number,
  widths: readonly number[]
): Promise<DataView> {
  const bytes = widths.reduce((sum, width) => sum + width, 0);
  const planes = await inflated(name, await decoded(name, zlib), rows * bytes);
  return new DataView((await withoutPlanes(planes, rows, widths)).buffer);
}

function short(value: unknown): string {
  return String(value).slice(0, 40);
}

async function decoded(name: string, base64: unknown): Promise<Uint8Array> {
  if (typeof base64 !== 'string') {
    throw new Error(`The saved ${name} are not a base64 text.`);
  }
  const whole = new Uint8Array(Math.ceil((base64.length * 3) / 4));
  let filled = 0;
  for (let at = 0; at < base64.length; at += DECODED_AT_ONCE) {
    const bytes = binary(name, base64.slice(at, at + DECODED_AT_ONCE));
    for (let place = 0; place < bytes.length; place++) {
      whole[filled++] = bytes.charCodeAt(place);
    }
    await pause();
  }
  return whole.subarray(0, filled);
}

function binary(name: string, base64: string): string {
  try {
    return atob(base64);
  } catch {
    throw new Error(`The saved ${name} are not valid base64.`);
  }
}

async function inflated(name: string, packed: Uint8Array, size: number): Promise<Uint8Array> {
  const whole = new Uint8Array(size);
  let filled = 0;
  const inflating = slices(packed).pipeThrough(new DecompressionStream('deflate')).getReader();
  for (;;) {
    const { done, value } = await inflating.read().catch(() => {
      throw new Error(`The saved ${name} are not valid zlib data.`);
    });
    if (done) {
      break;
    }
    if (filled + value.length > size) {
      inflating.cancel().catch(() => undefined);
      throw new Error(`The saved ${name} have more than the ${size} bytes of their rows.`);
    }
    whole.set(value, filled);
    filled += value.length;
  }
  if (filled < size) {
    throw new Error(`The saved ${name} have ${filled} bytes, not the ${size} of their rows.`);
  }
  return whole;
}

function slices(bytes: Uint8Array): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at < bytes.length) {
        controller.enqueue(bytes.slice(at, (at += SLICE_BYTES)));
      } else {
        controller.close();
      }
    }
  });
}

async function withoutPlanes(
  planes: Uint8Array,
  rows: number,
  widths: readonly number[]
): Promise<Uint8Array<ArrayBuffer>> {
  const data = new Uint8Array(planes.length);
  let column = 0;
  for (const bytes of widths) {
    for (let byte = 0; byte < bytes; byte++) {
      const plane = column + byte * rows;
      for (let row = 0; row < rows; row++) {
        data[column + row * bytes + byte] = planes[plane + row]!;
      }
    }
    column += bytes * rows;
    await pause();
  }
  return data;
}
