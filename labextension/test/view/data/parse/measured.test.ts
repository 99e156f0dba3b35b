import { describe, expect, it } from 'vitest';

import { NOT_MEASURED, parseMeasured } from '../../../../src/view/data/parse/parse.js';
import type { Measured } from '../../../../src/view/data/schema.js';
import { aSite, changed, someFacts } from '../../recordings.js';

const FACTS = someFacts();
const TWO = someFacts([aSite(), aSite()]);
const MEASURED: Measured = {
  id: 'r1',
  environment: { jax: '0.10.2', backend: 'cpu' },
  out_of_order: ['line 4 ran before line 3'],
  by_worker: ['4 calls by 1 worker: worker 1 · pid 7 4'],
  compilations: [{ program: 'jit_f', lower_ns: 1, compile_ns: 2.5, start_ns: -80 }],
  threads: ['MainThread'],
  errors: ['ValueError: no luck'],
  host_ns: [41_000],
  variants_ns: [[40_000, 1_000]],
  cells: [null],
  lines: [5],
  around: [['scan of 5']],
  sample_rows: [[-1]],
  calls: { rows: 1, unit_ns: 100, zlib: 'eJw=' },
  calls_not_saved: 3
};

function compiled(start_ns: unknown): object {
  return { program: 'jit_f', lower_ns: 1, compile_ns: 1, start_ns };
}

describe('parseMeasured', () => {
  it('returns valid measurements', () => {
    expect(parseMeasured(structuredClone(MEASURED), FACTS)).toEqual(MEASURED);
  });

  it.each([null, undefined, {}])('treats %j as cleared metadata', data => {
    expect(parseMeasured(data, FACTS)).toEqual(NOT_MEASURED);
  });

  it('reads a line that is unknown', () => {
    expect(parseMeasured({ ...MEASURED, lines: [0] }, FACTS).lines).toEqual([0]);
  });

  it('reads metadata of older versions, which lack some keys', () => {
    const paths = ['cells', 'variants_ns', 'by_worker', 'compilations.0.start_ns'];
    const older = paths.reduce((data, path) => changed(data, path, undefined), MEASURED as unknown);
    const compilations = [{ ...MEASURED.compilations[0]!, start_ns: null }];
    const read = { ...MEASURED, cells: [], variants_ns: [], by_worker: [], compilations };
    expect(parseMeasured(older, FACTS)).toEqual(read);
  });

  it.each([
    ['host_ns', 'no', 'measured.host_ns is "no", not a list.'],
    ['host_ns', [1], 'measured.host_ns has 1 entries for 2 sites.'],
    ['host_ns', [-1, 0], 'measured.host_ns[0] is -1, not a finite number of at least 0.'],
    ['host_ns', [NaN, 0], 'measured.host_ns[0] is NaN'],
    ['variants_ns', [[1], [-1]], 'measured.variants_ns[1][0] is -1, not a finite number'],
    ['cells', [3, 4], 'measured.cells[0] is 3, not text.'],
    ['environment', { jax: 3 }, 'measured.environment.jax is 3, not text.'],
    ['compilations', [compiled('0')], 'measured.compilations[0].start_ns is "0", not a time.'],
    ['compilations', [compiled(-1e300)], 'measured.compilations[0].start_ns is -1e+300'],
    ['calls', { site: [0] }, 'measured.calls.rows is missing.'],
    ['calls_not_saved', null, 'measured.calls_not_saved is null, not a whole number']
  ])('rejects metadata whose %s is %j', (path, value, message) => {
    expect(() => parseMeasured({ [path]: value }, TWO)).toThrow(message);
  });

  it('treats the key "__proto__" of the environment like any other', () => {
    const data = JSON.parse('{"environment":{"__proto__":"x"}}');
    const { environment } = parseMeasured(data, FACTS);
    expect(Object.keys(environment)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(environment)).toBe(Object.prototype);
  });

  it('truncates lists by site to the sites that are shown', () => {
    expect(parseMeasured({ host_ns: [1, 2, 3] }, FACTS).host_ns).toEqual([1]);
  });

  it('does not truncate compressed calls, which could then not be unpacked', () => {
    const calls = { rows: 1e9, unit_ns: 1, zlib: 'x'.repeat(1_000_000) };
    expect(parseMeasured({ calls }, FACTS).calls).toEqual(calls);
  });

  it('rejects compressed calls that are too long', () => {
    const calls = { rows: 1, unit_ns: 1, zlib: 'x'.repeat(64_000_001) };
    expect(() => parseMeasured({ calls }, FACTS)).toThrow('too many to unpack');
  });
});
