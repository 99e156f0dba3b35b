import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { Calls } from '../../../src/view/data/columns.js';
import { parseRecording } from '../../../src/view/data/parse/recording.js';
import { MIME_TYPE } from '../../../src/view/data/schema.js';
import { unpack } from '../../../src/view/data/unpack.js';

// The Python tests check that Python still writes exactly this file.
const GOLDEN = JSON.parse(readFileSync('../tests/data/recording.json', 'utf8'));
const { facts, measured } = parseRecording(GOLDEN.data[MIME_TYPE], GOLDEN.metadata[MIME_TYPE]);

describe('the recording that Python writes', () => {
  it('is read without loss', () => {
    const { sites, ...metadata } = GOLDEN.metadata[MIME_TYPE];
    const data = GOLDEN.data[MIME_TYPE];
    const merged = data.sites.map((site: object, place: number) => ({ ...site, ...sites[place] }));
    expect(facts).toMatchObject({ ...data, sites: merged });
    expect([facts.left_out, facts.full, facts.ahead]).toEqual([0, '', false]);
    expect(measured).toMatchObject(metadata);
  });

  it('has calls sorted by start', async () => {
    const raw = await unpack(measured.calls!);
    const calls = new Calls();
    calls.append(raw);
    const rows = Array.from({ length: calls.length }, (_, row) => row);
    expect(rows.map(row => calls.start(row))).toEqual([0, 55000, 56000, 60500, 61000, 95000]);
    expect(rows.map(row => calls.element(row))).toEqual([-1, 0, 4, 1, 5, -1]);
    expect(rows.map(row => calls.crossing(row))).toEqual([0, 1, 1, 1, 1, 2]);
    expect(calls.duration(5)).toBe(2_000_000_000);
    expect(measured.errors[calls.error(4) - 1]).toBe('ValueError: no <b>luck</b>');
  });

  it('has the same reasons and shapes as the plain text', () => {
    const text = GOLDEN.data['text/plain'];
    for (const site of facts.sites) {
      expect(text).toContain(site.reason);
      for (const variant of site.shapes) {
        expect(text).toContain(variant.shapes);
        expect(text).toContain(variant.vmaps);
      }
    }
  });
});
