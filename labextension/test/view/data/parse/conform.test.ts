import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import { conform } from '../../../../src/view/data/parse/conform.js';
import documents from '../../../../src/view/data/parse/documents.json';
import type { Facts, Measured } from '../../../../src/view/data/schema.js';
import { aProfile } from '../../profile/profiles.js';
import { aSite, BATCHED, changed, someFacts, someMeasured } from '../../recordings.js';

// The Python tests check that Python still sends exactly this.
const { progress } = JSON.parse(readFileSync('../tests/data/messages.json', 'utf8'));
const [FACTS] = conform(
  'Facts',
  someFacts([
    aSite({
      shapes: [BATCHED],
      sample_values: [['0.5 → 1', false]]
    })
  ])
);
const MEASURED = someMeasured({
  environment: { jax: '0.10.2' },
  compilations: [{ program: 'jit_f', lower_ns: 1, compile_ns: 2, start_ns: -80 }],
  calls: { rows: 1, unit_ns: 100, zlib: 'eJw=', crossings: '' },
  profile: aProfile()
});

function facts(path: string, value: unknown): readonly [Facts, string] {
  return conform('Facts', changed(FACTS, path, value));
}

function measured(path: string, value: unknown): readonly [Measured, string] {
  return conform('Measured', changed(MEASURED, path, value));
}

test.each([
  ['Facts', FACTS],
  ['Measured', MEASURED],
  ['Progress', progress]
] as const)('what Python sends is read without loss: %s', (kind, data) => {
  expect(conform(kind, structuredClone(data))).toEqual([data, '']);
});

test('what is left out has the default of the schema, or is absent', () => {
  const least = { function: 'f', flavor: 'io', where: 'line 3', line: 3, cell_line: 3 };
  const [{ sites, ahead }, damage] = conform('Facts', { schema: 1, sites: [{ ...least, shapes: [{ shapes: '' }] }] });
  expect(damage).toBe('');
  expect(sites[0]).toMatchObject({ ...least, status: 'kept', cell: true, host_ns: null, notes: [] });
  expect([ahead, sites[0]!.first_element, sites[0]!.shapes[0]!.diagram]).toEqual([false, -1, undefined]);
});

test('unknown and inherited keys are left out', () => {
  const data: unknown = JSON.parse('{"schema":1,"sites":[],"__proto__":{"a":1},"b":2}');
  expect(Object.keys(conform('Facts', data)[0])).toEqual(Object.keys(documents.Facts.properties));
  expect(({} as Record<string, unknown>)['a']).toBeUndefined();
  expect(conform('Facts', Object.create({ ...FACTS }))[1]).toBe('schema is missing.');
});

test('any text may be a key of a map', () => {
  const { environment } = conform('Measured', JSON.parse('{"environment":{"__proto__":"x"}, "sites":[]}'))[0];
  expect([Object.keys(environment), environment['constructor']]).toEqual([['__proto__'], undefined]);
});

test.each([
  ['sites.0.function', 7, '?', 'sites[0].function is 7, not text.'],
  ['sites.0.where', undefined, '?', 'sites[0].where is missing.'],
  ['sites.0.reason', [], '?', 'sites[0].reason is a list, not text.'],
  ['sites.0.calls', 'x', 0, 'sites[0].calls is "x", not a whole number of at least 0.'],
  ['sites.0.calls', -1, 0, 'sites[0].calls is -1, not a whole number of at least 0.'],
  ['sites.0.calls', 1e300, 0, 'sites[0].calls is 1e+300, not a whole number of at least 0.'],
  ['sites.0.expected', {}, null, 'sites[0].expected is an object, not a whole number of at least 0.'],
  ['sites.0.first_element', -2, -1, 'sites[0].first_element is -2, not a whole number of at least -1.'],
  ['sites.0.cell', null, true, 'sites[0].cell is null, not true or false.'],
  ['sites.0.notes', {}, [], 'sites[0].notes is an object, not a list.'],
  ['sites.0.status', 'lost', 'kept', 'sites[0].status is "lost", not one of kept, not_run, not_reached'],
  ['sites.0.shapes.0.diagram', 3, undefined, 'sites[0].shapes[0].diagram is 3, not an object.'],
  [
    'sites.0.shapes.0.diagram.rows.0',
    [[]],
    ['?', [], [], '?', '?'],
    'sites[0].shapes[0].diagram.rows[0] is a list, not a list of 5.'
  ],
  ['headline.0.0', 'odd', 'quiet', 'headline[0][0] is "odd", not one of error, warning, kept, quiet.'],
  ['ahead', 1, false, 'ahead is 1, not true or false.']
])('%s that is %j is replaced by %j, and named', (path, value, read, words) => {
  const [data, damage] = facts(path, value);
  expect(path.split('.').reduce<any>((inner, key) => inner[key], data)).toEqual(read);
  expect(damage).toContain(words);
});

test('what is no object has the defaults of its keys', () => {
  const [{ sites }, damage] = facts('sites.0', 3);
  expect(sites).toMatchObject([{ function: '?', line: 0, status: 'kept', shapes: [] }]);
  expect(damage).toBe('sites[0] is 3, not an object.');
  expect(measured('compilations.0.start_ns', '0')[0].compilations[0]!.start_ns).toBeNull();
  expect(measured('profile', 3)[0].profile).toBeUndefined();
});

test('only what is wrong first is named, shortly', () => {
  const data = changed(changed(FACTS, 'ahead', 1), 'sites.0.calls', 'x'.repeat(1_000_000));
  expect(conform('Facts', data)[1]).toMatch(/^sites\[0\]\.calls is "x{39}…", not .{0,40}$/);
});

test('texts and lists are cut, a pair of surrogates not in its middle', () => {
  const [{ sites }] = facts('sites.0', {
    ...FACTS.sites[0],
    source: 'x'.repeat(10_000_000),
    where: `${'x'.repeat(198)}😀😀`,
    errors: ['x'.repeat(20_000)],
    notes: Array(5_000).fill('y')
  });
  const [site] = sites;
  expect([site!.source, site!.where]).toEqual([`${'x'.repeat(999)}…`, `${'x'.repeat(198)}…`]);
  expect([site!.errors[0]!.length, site!.notes.length]).toEqual([10_000, 1_000]);
  const zlib = 'x'.repeat(1_000_000); // cut, it could not be unpacked
  expect(measured('calls.zlib', zlib)[0].calls!.zlib).toBe(zlib);
});

test('the number of values is bounded', () => {
  const rows = Array(1_000).fill(['x', [], Array(1_000).fill(1), '', '']);
  const diagram = { ...BATCHED.diagram, rows };
  const [{ sites }, damage] = facts('sites.0.shapes', Array(400).fill({ ...BATCHED, diagram }));
  expect(damage).toMatch(/^sites\[0\]\.shapes\[0\]\.diagram\.rows\[\d+\]\[2\] has more values than can be shown\.$/);
  expect(sites[0]!.shapes[0]!.diagram!.rows.at(-1)).toEqual(['x', [], [], '', '']);
});
