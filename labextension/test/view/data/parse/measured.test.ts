import { describe, expect, it } from 'vitest';

import { NOT_MEASURED, parseMeasured } from '../../../../src/view/data/parse/parse.js';
import type { Measured, SiteMeasured } from '../../../../src/view/data/schema.js';
import { unmeasured } from '../../../../src/view/data/parse/site.js';
import { changed } from '../../recordings.js';

const MEASURED: Measured = {
  id: 'r1',
  environment: { jax: '0.10.2', backend: 'cpu' },
  out_of_order: ['line 4 ran before line 3'],
  by_worker: ['4 calls by 1 worker: worker 1 · pid 7 4'],
  compilations: [{ program: 'jit_f', lower_ns: 1, compile_ns: 2.5, start_ns: -80 }],
  threads: ['MainThread'],
  wall_ns: 5.3e9,
  time: '46 µs of 5 ms',
  other_time: '',
  errors: ['ValueError: no luck'],
  calls: { rows: 1, unit_ns: 100, zlib: 'eJw=', crossings: 'eJw=' },
  calls_not_saved: 3,
  profile: undefined
};

const SITE: SiteMeasured = {
  ...unmeasured(4),
  host_ns: 41_000,
  variants_ns: [40_000, 1_000],
  cell_id: null,
  cell_line: 0,
  around: ['scan of 5'],
  stack: ['while', 'jit'],
  sample_rows: [-1]
};

function compiled(start_ns: unknown): object {
  return { program: 'jit_f', lower_ns: 1, compile_ns: 1, start_ns };
}

describe('parseMeasured', () => {
  it('returns valid measurements', () => {
    const read = parseMeasured({ ...structuredClone(MEASURED), sites: [SITE] }, [4]);
    expect(read).toEqual({ measured: MEASURED, sites: [SITE] });
  });

  it.each([null, undefined, {}])('treats %j as cleared metadata', data => {
    expect(parseMeasured(data, [4])).toEqual({ measured: NOT_MEASURED, sites: [] });
  });

  it('reads metadata of older versions, which lack some keys', () => {
    const paths = ['by_worker', 'compilations.0.start_ns', 'sites.0.cell_line', 'sites.0.stack'];
    const saved: unknown = { ...MEASURED, sites: [SITE] };
    const older = paths.reduce((data, path) => changed(data, path, undefined), saved);
    const compilations = [{ ...MEASURED.compilations[0]!, start_ns: null }];
    expect(parseMeasured(older, [4])).toEqual({
      measured: { ...MEASURED, by_worker: [], compilations },
      sites: [{ ...SITE, cell_line: 4, stack: [] }]
    });
  });

  it.each([
    ['sites', 'no', 'measured.sites is "no", not a list.'],
    ['sites', [SITE], 'measured.sites has 1 entries for 2 sites.'],
    ['sites', [SITE, { ...SITE, host_ns: NaN }], 'measured.sites[1].host_ns is NaN, not a finite'],
    ['environment', { jax: 3 }, 'measured.environment.jax is 3, not text.'],
    ['compilations', [compiled('0')], 'measured.compilations[0].start_ns is "0", not a time.'],
    ['compilations', [compiled(-1e300)], 'measured.compilations[0].start_ns is -1e+300'],
    ['calls', { site: [0] }, 'measured.calls.rows is missing.'],
    ['calls_not_saved', null, 'measured.calls_not_saved is null, not a whole number']
  ])('rejects metadata whose %s is %j', (path, value, message) => {
    expect(() => parseMeasured({ [path]: value }, [4, 5])).toThrow(message);
  });

  it('treats the key "__proto__" of the environment like any other', () => {
    const data = JSON.parse('{"environment":{"__proto__":"x"}}');
    const { environment } = parseMeasured(data, [4]).measured;
    expect(Object.keys(environment)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(environment)).toBe(Object.prototype);
  });

  it('truncates the list of sites to the sites that are shown', () => {
    expect(parseMeasured({ sites: [SITE, SITE, SITE] }, [4]).sites).toEqual([SITE]);
  });

  it('does not truncate compressed calls, which could then not be unpacked', () => {
    const calls = { rows: 1e9, unit_ns: 1, zlib: 'x'.repeat(1_000_000), crossings: '' };
    expect(parseMeasured({ calls }, [4]).measured.calls).toEqual(calls);
  });

  it('rejects compressed calls that are too long', () => {
    const calls = { rows: 1, unit_ns: 1, zlib: 'x'.repeat(64_000_001) };
    expect(() => parseMeasured({ calls }, [4])).toThrow('too many to unpack');
  });
});
