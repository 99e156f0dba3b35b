import { describe, expect, it } from 'vitest';

import { BadRecording, parseFacts } from '../../../../src/view/data/parse/parse.js';
import { aSite, aVariant, changed, someFacts } from '../../recordings.js';

const FACTS = someFacts([
  aSite({
    shapes: [aVariant([[4, 1]], [[4]], [[4, 'expand_dims', [true]]])],
    sample_values: [[-1, ['0.5'], ['1'], false, null]]
  })
]);

describe('parseFacts', () => {
  it('returns the facts of a valid recording', () => {
    expect(parseFacts(structuredClone(FACTS))).toEqual({ ...FACTS, not_kept: 0, left_out: 0 });
  });

  it('drops keys that are not in the schema', () => {
    const json = '{"schema":1,"sites":[],"overflow":0,"ahead":true,"__proto__":{"a":1},"b":2}';
    const keys = Object.keys(parseFacts(JSON.parse(json)));
    expect(keys).toEqual(['schema', 'headline', 'sites', 'overflow', 'not_kept', 'ahead', 'left_out']);
    expect(({} as Record<string, unknown>)['a']).toBeUndefined();
  });

  it('ignores inherited keys', () => {
    const data: unknown = Object.create({ ...FACTS });
    expect(() => parseFacts(data)).toThrow('schema is missing.');
  });

  it('rejects another schema, and advises an update', () => {
    expect(() => parseFacts({ schema: 2 })).toThrow(
      'this recording has schema 2; this version of jupyter_jaxcb shows schema 1. ' +
        'Update jupyter_jaxcb where JupyterLab runs.'
    );
  });

  it.each([
    [null, 'the recording is null, not an object.'],
    [undefined, 'the recording is missing.'],
    [[], 'the recording is a list, not an object.'],
    ['text', 'the recording is "text", not an object.']
  ])('rejects %j in place of a recording', (data, message) => {
    expect(() => parseFacts(data)).toThrow(new BadRecording(message));
  });

  it.each([
    ['sites', undefined, 'sites is missing.'],
    ['sites', {}, 'sites is an object, not a list.'],
    ['ahead', 1, 'ahead is 1, not true or false.'],
    ['overflow', NaN, 'overflow is NaN, not a whole number of at least 0.'],
    ['sites.0', 3, 'sites[0] is 3, not an object.'],
    ['sites.0.function', 7, 'sites[0].function is 7, not text.'],
    ['sites.0.calls', -1, 'sites[0].calls is -1, not a whole number of at least 0.'],
    ['sites.0.calls', 1.5, 'sites[0].calls is 1.5, not a whole number of at least 0.'],
    ['sites.0.calls', 1e300, 'sites[0].calls is 1e+300, not a whole number of at least 0.'],
    ['sites.0.expected', Infinity, 'sites[0].expected is Infinity, not a whole number'],
    ['sites.0.status', 'lost', 'sites[0].status is "lost", not one of unused, optimized_away'],
    ['sites.0.shapes.0.operands.0.0', [-3], 'sites[0].shapes[0].operands[0][0][0] is -3, not'],
    ['sites.0.shapes.0.operands.0', [[]], 'sites[0].shapes[0].operands[0] has 1 entries, not 2.'],
    ['sites.0.shapes.0.levels.0.2', [0], 'sites[0].shapes[0].levels[0][2][0] is 0, not true'],
    ['sites.0.shapes.0.axes.0.results', 'odd', 'axes[0].results is "odd", not one of batched, tiled'],
    ['sites.0.shapes.0.axes.0.operands', [], 'sites[0].shapes[0].axes do not fit its vmaps.'],
    ['sites.0.shapes.0.axes', [], 'sites[0].shapes[0].axes do not fit its vmaps.'],
    ['sites.0.sample_values.0.0', -2, 'sites[0].sample_values[0][0] is -2, not a whole number of at least -1']
  ])('rejects a recording whose %s is %j', (path, value, message) => {
    expect(() => parseFacts(changed(FACTS, path, value))).toThrow(message);
    expect(() => parseFacts(changed(FACTS, path, value))).toThrow(BadRecording);
  });

  it('shortens a wrong value in the message', () => {
    const data = changed(FACTS, 'sites.0.calls', 'x'.repeat(1_000_000));
    expect(() => parseFacts(data)).toThrow(/^.{0,140}$/);
  });

  it('truncates long texts', () => {
    const { sites } = parseFacts(changed(FACTS, 'sites.0.source', 'x'.repeat(10_000_000)));
    expect(sites[0]!.source).toBe(`${'x'.repeat(999)}…`);
  });

  it('does not split a character when truncating', () => {
    const { sites } = parseFacts(changed(FACTS, 'sites.0.where', `${'x'.repeat(198)}😀😀`));
    expect(sites[0]!.where).toBe(`${'x'.repeat(198)}…`);
  });

  it('reads a bounded number of sites, and counts the others', () => {
    const { sites, left_out } = parseFacts({ ...FACTS, sites: Array(5_000).fill(FACTS.sites[0]) });
    expect([sites.length, left_out]).toEqual([2_000, 3_000]);
  });

  it('rejects sites with more values than can be read quickly', () => {
    const operands = Array(1_000).fill([1]);
    const site = aSite({ shapes: Array(400).fill(aVariant(operands, [])) });
    expect(() => parseFacts(someFacts([site, site]))).toThrow(
      'sites holds more than 300,000 values, too many to show.'
    );
  });

  it('rejects a shape with a hundred thousand axes', () => {
    const data = changed(FACTS, 'sites.0.shapes.0.operands.0.0', Array(100_000).fill(1));
    expect(() => parseFacts(data)).toThrow('is a list, not a shape of at most 64 axes.');
  });
});
