import { deflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { Calls } from '../../../src/view/data/columns.js';
import type { SavedCalls } from '../../../src/view/data/schema.js';
import { type RawCalls, unpack } from '../../../src/view/data/unpack.js';

const WIDTHS = [4, 4, 4, 2, 2, 2];

function planes(columns: readonly (readonly number[])[], widths = WIDTHS): Uint8Array {
  const bytes: number[] = [];
  columns.forEach((column, place) => {
    for (let byte = 0; byte < widths[place]!; byte++) {
      bytes.push(...column.map(value => (value >> (8 * byte)) & 0xff));
    }
  });
  return Uint8Array.from(bytes);
}

/** Unpacks calls that were saved without their crossings, as by older versions. */
function saved(calls: Omit<SavedCalls, 'crossings'>): Promise<RawCalls> {
  return unpack({ crossings: '', ...calls });
}

function zlib(bytes: Uint8Array): string {
  return deflateSync(bytes).toString('base64');
}

function columns(rows: number): number[][] {
  return WIDTHS.map((_, n) => Array.from({ length: rows }, (_, row) => row * 259 + n));
}

describe('unpack', () => {
  test('returns the columns that were saved', async () => {
    const some = [[0, 70000], [300, 5], [-1, 66000], [1, 2], [0, 513], [0, 65535]];
    const raw = await saved({
      rows: 2,
      unit_ns: 100,
      zlib: zlib(planes(some))
    });
    const calls = new Calls();
    calls.append(raw);
    expect([0, 1].map(row => calls.start(row))).toEqual([0, 7_000_000]);
    expect([0, 1].map(row => calls.duration(row))).toEqual([30_000, 500]);
    expect([0, 1].map(row => calls.element(row))).toEqual([-1, 66000]);
    expect([0, 1].map(row => calls.variant(row))).toEqual([1, 2]);
    expect([0, 1].map(row => calls.thread(row))).toEqual([0, 513]);
    expect([0, 1].map(row => calls.error(row))).toEqual([0, 65535]);
  });

  test('returns the crossings that were saved, and none if there are none', async () => {
    const calls = { rows: 3, unit_ns: 1, zlib: zlib(planes(columns(3))) };
    const { crossings } = await unpack({ ...calls, crossings: zlib(planes([[7, 7, 70_000]], [4])) });
    expect([0, 4, 8].map(at => crossings!.getUint32(at, true))).toEqual([7, 7, 70_000]);
    expect((await saved(calls)).crossings).toBeUndefined();
  });

  test('returns calls whose crossings are damaged without them, and says why', async () => {
    const calls = { rows: 3, unit_ns: 1, zlib: zlib(planes(columns(3))) };
    for (const [crossings, why] of [
      [zlib(planes([[7]], [4])), 'have 4 bytes, not the 12 of their rows.'],
      [zlib(planes([[7, 7, 7, 7]], [4])), 'have more than the 12 bytes of their rows.'],
      ['§§', 'are not valid base64.'],
      ['AAAA', 'are not valid zlib data.']
    ] as const) {
      const { data, ...others } = await unpack({ ...calls, crossings });
      expect(data.getUint32(8, true)).toBe(2 * 259);
      expect(others).toEqual({ rows: 3, unit_ns: 1, crossingsProblem: `The saved crossings ${why}` });
    }
  });

  test('unpacks many rows, which take more than one slice', async () => {
    const many = columns(20_000).map(column => column.map(value => (value * 7919) % 65521));
    const { data } = await saved({ rows: 20_000, unit_ns: 1, zlib: zlib(planes(many)) });
    expect(data.getUint32(4 * 19_999, true)).toBe(many[0]![19_999]);
    expect(data.getUint16(16 * 20_000 + 2 * 19_999, true)).toBe(many[5]![19_999]);
  });

  test('returns no data if no rows were saved', async () => {
    const { data } = await saved({ rows: 0, unit_ns: 1, zlib: zlib(new Uint8Array()) });
    expect(data.byteLength).toBe(0);
  });

  test('rejects an invalid number of rows', async () => {
    const text = zlib(planes(columns(1)));
    for (const rows of [-1, 1.5, NaN, 2_000_001, '1' as unknown as number]) {
      await expect(saved({ rows, unit_ns: 1, zlib: text })).rejects.toThrow(/have .* rows, not 0 to 2,000,000/);
    }
  });

  test('rejects an invalid time unit', async () => {
    const text = zlib(planes(columns(1)));
    for (const unit_ns of [0, -1, NaN, Infinity, 1e300]) {
      await expect(saved({ rows: 1, unit_ns, zlib: text })).rejects.toThrow('time unit');
    }
  });

  test('rejects invalid base64', async () => {
    await expect(saved({ rows: 1, unit_ns: 1, zlib: '§§' })).rejects.toThrow('valid base64');
    const none = undefined as unknown as string;
    await expect(saved({ rows: 1, unit_ns: 1, zlib: none })).rejects.toThrow('base64 text');
  });

  test('rejects invalid zlib data', async () => {
    const noise = Buffer.from('no zlib at all').toString('base64');
    await expect(saved({ rows: 1, unit_ns: 1, zlib: noise })).rejects.toThrow('valid zlib');
  });

  test('rejects truncated zlib data', async () => {
    const cut = deflateSync(planes(columns(100))).subarray(0, 40).toString('base64');
    await expect(saved({ rows: 100, unit_ns: 1, zlib: cut })).rejects.toThrow(/zlib|bytes/);
  });

  test('rejects fewer bytes than the rows take', async () => {
    const short = zlib(planes(columns(1)));
    await expect(saved({ rows: 2, unit_ns: 1, zlib: short })).rejects.toThrow('18 bytes, not');
  });

  test('stops inflating a zip bomb soon after the expected size', async () => {
    const bomb = zlib(new Uint8Array(100_000_000));
    const before = process.memoryUsage().arrayBuffers;
    await expect(saved({ rows: 1, unit_ns: 1, zlib: bomb })).rejects.toThrow('more than the 18');
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50_000_000);
  });
});
