import { expect, test } from 'vitest';

import { BadRecording, parseRecording } from '../../../../src/view/data/parse/recording.js';
import { aProfile } from '../../profile/profiles.js';
import { aSite, BATCHED, changed, someFacts, someMeasured } from '../../recordings.js';

const FACTS = someFacts([aSite({ shapes: [BATCHED] }), aSite({ line: 7, cell_line: 9 })]);

function withProfile(path: string, value: unknown) {
  const profile = changed(aProfile(), path, value);
  return parseRecording(FACTS, { sites: [], profile });
}

test('sites have what the data and what the metadata say about them', () => {
  const { sites: _, ...data } = FACTS;
  const saved = { ...data, sites: [{ function: 'f', flavor: 'io', where: 'line 3', line: 3 }] };
  const { facts, damage } = parseRecording(saved, { sites: [{ host_ns: 5, cell_line: 2 }] });
  expect(facts.sites).toMatchObject([{ function: 'f', line: 3, host_ns: 5, cell_line: 2 }]);
  expect([facts.left_out, damage]).toEqual([0, '']);
});

test.each([null, undefined, { sites: [] }])('metadata may be %j, and a line is then that of the file', data => {
  const { facts, measured, damage } = parseRecording(changed(FACTS, 'sites.1.cell_line', undefined), data);
  expect(facts.sites.map(site => [site.cell_line, site.host_ns])).toEqual([[4, null], [7, null]]);
  expect([measured.calls, measured.profile, damage]).toEqual([null, undefined, '']);
});

test.each([
  [null, 'the recording is null, not an object.'],
  [undefined, 'the recording is missing.'],
  [[], 'the recording is a list, not an object.'],
  [{}, 'schema is missing.'],
  [{ schema: 0 }, 'schema is 0, not 1.'],
  [
    { schema: 2 },
    'it was made by a newer version of jupyter_jaxcb (schema 2; this one shows schema 1). ' +
      'Update jupyter_jaxcb where JupyterLab runs.'
  ]
])('%j is no recording', (data, message) => {
  expect(() => parseRecording(data, null)).toThrow(new BadRecording(message));
});

test('damage in the data or in the metadata is named, and the rest is read', () => {
  const { facts, damage } = parseRecording(changed(FACTS, 'sites.1.calls', 'x'), null);
  expect(facts.sites.map(site => site.calls)).toEqual([1, 0]);
  expect(damage).toBe('sites[1].calls is "x", not a whole number of at least 0.');
  const other = parseRecording(FACTS, { ...someMeasured({ time: '5 ms' }), wall_ns: -1, sites: ['x'] });
  expect([other.damage, other.measured.time]).toEqual([
    'measured.wall_ns is -1, not a whole number of at least 0.',
    '5 ms'
  ]);
});

test('a bounded number of sites is read, and the others are counted', () => {
  const { facts } = parseRecording({ ...FACTS, sites: Array(5_000).fill(FACTS.sites[0]) }, null);
  expect([facts.sites.length, facts.left_out]).toEqual([2_000, 3_000]);
});

test.each([
  ['parts.0.kind', 3],
  ['lanes.1.spans', [0, 1]],
  ['lanes.1.spans', [0, 1, 5]],
  ['lanes.1.spans', [0, 2e9, 0]],
  ['lanes.1.spans', [5, 5, 0, 7, 5, 1]]
])('a profile whose %s is %j is left out', (path, value) => {
  const { measured, damage } = withProfile(path, value);
  expect([measured.profile, damage]).toEqual([undefined, 'the parts of measured.profile do not fit together.']);
});

test('spans may overlap by a nanosecond, because times are rounded', () => {
  const lanes = [{ name: 'worker 1', spans: [0, 11, 0, 10, 1e9 - 9, 1] }];
  expect(withProfile('lanes', lanes).measured.profile!.lanes).toEqual(lanes);
});
