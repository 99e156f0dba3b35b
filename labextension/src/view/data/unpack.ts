/** Unpacks the host calls saved in an output. */

import { ROW_BYTES, type SavedCalls } from './schema.js';

/** Host calls in the raw layout of `SavedCalls`. */
export interface RawCalls {
  readonly rows: number;
  readonly unit_ns: number;
  readonly data: DataView;
}

const MOST_ROWS = 200_000; // ten times what a notebook saves
const LONGEST_UNIT_NS = 1e9; // keeps every sum of times finite
const COLUMN_BYTES: readonly number[] = [4, 4, 4, 2, 2, 2];
const SLICE_BYTES = 4096; // inflates to at most 4 MB, to detect a zip bomb before it fills memory

/** Unpacks untrusted data. Throws Error with a one-sentence message if it is malformed. */
export async function unpack(saved: SavedCalls): Promise<RawCalls> {
  const { rows, unit_ns, zlib } = saved;
  if (!Number.isInteger(rows) || rows < 0 || rows > MOST_ROWS) {
    throw new Error(
      `The saved calls have ${short(rows)} rows, not 0 to ${MOST_ROWS.toLocaleString('en-US')}.`
    );
  }
  if (!Number.isFinite(unit_ns) || unit_ns <= 0 || unit_ns > LONGEST_UNIT_NS) {
    throw new Error(`The saved calls have an invalid time unit: ${short(unit_ns)}.`);
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
      throw new Error(`The saved calls have more than the ${size} bytes of their rows.`);
    }
    whole.set(value, filled);
    filled += value.length;
  }
  if (filled < size) {
    throw new Error(`The saved calls have ${filled} bytes, not the ${size} of their rows.`);
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
