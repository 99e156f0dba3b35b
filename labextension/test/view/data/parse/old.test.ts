import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { parseRecording } from '../../../../src/view/data/parse/parse.js';
import type { AxisKind } from '../../../../src/view/data/schema.js';
import { aSite, aVariant, changed, someFacts } from '../../recordings.js';

const FACTS = someFacts([
  aSite({ shapes: [aVariant([[4, 1]], [[4]], [[4, 'expand_dims', [true]]])] }),
  aSite({ errors: ['E'], line: 7 })
]);

/** For methods of older versions, the axes of a batched and an unbatched operand, results, and mask. */
const KINDS = new Map<string, readonly [readonly AxisKind[], AxisKind, AxisKind]>([
  ['sequential', [['looped', 'unbatched'], 'looped', 'unbatched']],
  ['sequential_unrolled', [['looped', 'unbatched'], 'looped', 'unbatched']],
  ['expand_dims', [['batched', 'size1'], 'batched', 'size1']],
  ['broadcast_all', [['batched', 'tiled'], 'batched', 'tiled']],
  ['legacy_vectorized', [['batched', 'unbatched'], 'batched', 'unbatched']],
  ['whole batch', [['in_place', 'unbatched'], 'in_place', 'unbatched']]
]);

// One output of the first tutorial, as two earlier versions saved it; the first had no headline.
const SAVED = JSON.parse(readFileSync('../tests/data/saved.json', 'utf8'));

describe('outputs of older versions', () => {
  it.each([
    [0, 0, [39559, 15033, 0], 'unused', []],
    [1, 4, [44497, 13761, 0], 'not_needed', ['order', 'z']]
  ])('are shown: saved output %i', (place, parts, times, last, names) => {
    const { data, metadata } = SAVED[place];
    const { facts, measured, problem } = parseRecording(data, metadata);
    expect([problem, facts.headline.length, measured.calls!.rows]).toEqual(['', parts, 2]);
    expect(facts.sites.map(site => site.host_ns)).toEqual(times);
    expect(facts.sites.map(site => site.consequence)).toEqual(['kept', 'kept', last]);
    const [variant] = facts.sites[0]!.shapes;
    expect(variant!.axes).toEqual([{ operands: ['size1', 'batched'], results: 'batched' }]);
    expect(variant!.operand_names).toEqual(names);
    const around = { cell_id: null, cell_line: 5, around: ['custom_jvp_call'], stack: ['vmap(jvp())'] };
    expect(facts.sites[0]).toMatchObject(around);
  });

  it('have no names of arguments and results, and no consequences', () => {
    const paths = ['shapes.0.operand_names', 'shapes.0.result_names', 'consequence'];
    const all = [0, 1].flatMap(site => paths.map(path => `sites.${site}.${path}`));
    const saved = all.reduce((data, path) => changed(data, path, undefined), FACTS as unknown);
    const { sites } = parseRecording(saved, null).facts;
    expect(sites[0]!.shapes[0]).toMatchObject({ operand_names: [], result_names: [] });
    expect(sites.map(site => site.consequence)).toEqual(['kept', 'raised']);
  });

  it('have no figures, which notes begin with', () => {
    const notes = ['queued: it does not wait', 'compiled by numba: fast', 'no argument is batched: x'];
    const figures = (own: object) => {
      const metadata = { sites: [{ cell_line: 3, ...own }] };
      return parseRecording(someFacts([aSite({ notes })]), metadata).facts.sites[0]!.figures;
    };
    expect(figures({})).toEqual([['queued', true], ['compiled', true]]);
    expect(figures({ figures: [['2 ms a call', false]] })).toEqual([['2 ms a call', false]]);
  });

  it('have only the names of vmap methods', () => {
    const levels = [...KINDS.keys()].map(method => [4, method, [true, false]] as const);
    const axes = [...KINDS.values()].map(([operands, results, mask]) => ({ operands, results, mask }));
    const known = { ...aVariant([[4], []], [[4]]), levels, mask: [levels.map(() => false), 1, 4] };
    const path = 'sites.0.shapes.0';
    const saved = changed(changed(FACTS, path, known), `${path}.axes`, undefined);
    expect(parseRecording(saved, null).facts.sites[0]!.shapes[0]!.axes).toEqual(axes);
  });

  it('have measurements in one list for each kind', () => {
    const lists = { host_ns: [5, 6], cells: ['c1', null], lines: [3, 8], around: [['cond'], []] };
    const { facts, problem } = parseRecording(FACTS, { ...lists, variants_ns: [], stack: [[], ['jit']] });
    expect(problem).toBe('');
    expect(facts.sites).toMatchObject([
      { host_ns: 5, cell_id: 'c1', cell_line: 3, around: ['cond'], stack: [], variants_ns: [] },
      { host_ns: 6, cell_id: null, cell_line: 8, around: [], stack: ['jit'], sample_rows: [] }
    ]);
  });

  it.each([
    ['host_ns', 'no', 'measured.sites[0].host_ns is "no", not a finite number'],
    ['cells', [3, 4], 'measured.sites[0].cell_id is 3, not text.']
  ])('are shown without measurements if their %s are %j', (name, list, why) => {
    const { facts, problem } = parseRecording(FACTS, { [name]: list });
    expect(problem).toContain(why);
    expect(facts.sites[0]).toMatchObject({ host_ns: null, cell_id: null, cell_line: 4 });
  });

  it.each([[null], [[]], [{ shapes: [3] }], [{ shapes: [{ levels: 3, mask: 'no' }] }]])(
    'are refused in one sentence if a site is %j',
    site => expect(() => parseRecording({ ...FACTS, sites: [site] }, null)).toThrow(/^sites\[0\].*\.$/)
  );
});
