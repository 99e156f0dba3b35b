/** Host calls as an output saves them, back in the columns that `Calls` reads. */

import { ROW_BYTES, type SavedCalls } from './schema.js';

/** Host calls in the raw layout of `SavedCalls`. */
export interface RawCalls {
  readonly rows: number;
  readonly unit_ns: number;
  readonly data: DataView;
}

const MOST_ROWS = 2_000_000;
const LONGEST_UNIT_NS = 1e9; // keeps every sum of times finite
const COLUMN_BYTES: readonly number[] = [4, 4, 4, 2, 2, 2];
const SLICE_BYTES = 4096; // inflates to 4 MB at most, so a bomb is seen before it fills the memory

/** Throws Error with one sentence if `saved`, which may come from anywhere, is not what it says. */
export async function unpack(saved: SavedCalls): Promise<RawCalls> {
  const { rows, unit_ns, zlib } = saved;
  if (!Number.isInteger(rows) || rows < 0 || rows > MOST_ROWS) {
    throw new Error(`The saved calls say that they are ${short(rows)} rows, which cannot be.`);
  }
  if (!Number.isFinite(unit_ns) || unit_ns <= 0 || unit_ns > LONGEST_UNIT_NS) {
    throw new Error(`The saved calls have ${short(unit_ns)} as their unit of time.`);
  }
  const planes = await inflated(decoded(zlib), rows * ROW_BYTES);
  return { rows, unit_ns, data: new DataView(withoutPlanes(planes, rows).buffer) };
}

function short(value: unknown): string {
  return String(value).slice(0, 40);
}

function decoded(base64: unknown): Uint8Array {
  if (typeof base64 !== 'string') {
    throw new Error('The saved calls are not a base64 text.');
  }
  let bytes: string;
  try {
    bytes = atob(base64);
  } catch {
    throw new Error('The saved calls are not valid base64.');
  }
  return Uint8Array.from(bytes, byte => byte.charCodeAt(0));
}

async function inflated(packed: Uint8Array, size: number): Promise<Uint8Array> {
  const whole = new Uint8Array(size);
  let filled = 0;
  const inflating = slices(packed).pipeThrough(new DecompressionStream('deflate')).getReader();
  for (;;) {
    const { done, value } = await inflating.read().catch(() => {
      throw new Error('The saved calls are not valid zlib data.');
    });
    if (done) {
      break;
    }
    if (filled + value.length > size) {
      inflating.cancel().catch(() => undefined);
      throw new Error(`The saved calls are more than the ${size} bytes that their rows take.`);
    }
    whole.set(value, filled);
    filled += value.length;
  }
  if (filled < size) {
    throw new Error(`The saved calls are ${filled} bytes, not the ${size} that their rows take.`);
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

function withoutPlanes(planes: Uint8Array, rows: number): Uint8Array<ArrayBuffer> {
  const data = new Uint8Array(planes.length);
  let column = 0;
  for (const bytes of COLUMN_BYTES) {
    for (let byte = 0; byte < bytes; byte++) {
      const plane = column + byte * rows;
      for (let row = 0; row < rows; row++) {
        data[column + row * bytes + byte] = planes[plane + row]!;
      }
    }
    column += bytes * rows;
  }
  return data;
}
