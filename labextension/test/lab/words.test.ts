import { expect, test } from 'vitest';
import { siteSign, siteTone, toneOf } from '../../src/view/data/words.js';
import type { Proposal, Site } from '../../src/view/data/schema.js';
import {
  callbackBrief,
  sentences,
  siteBrief,
  siteDetails,
  siteFigures,
  worstTone
} from '../../src/lab/words.js';
import { aVariant } from '../view/recordings.js';
import { CALLBACK, SITE } from './snapshots.js';

function site(parts: Partial<Site> = {}): Site {
  return { ...SITE, consequence: 'kept', ...parts };
}

const UNUSED = site({
  consequence: 'unused',
  calls: 0,
  elided: 1,
  reason: 'nothing uses its result, so JAX removed the call',
  advice: 'return it'
});

test('the text of a kept site gives its calls, time and shapes', () => {
  expect(siteBrief(site())).toBe('5 calls · 41 µs · () → (5,)');
});

test('a site is not healthy that took most of the time, loops for long, or is compiled again', () => {
  const costly = site({ cost: '82 %' });
  expect(siteBrief(costly)).toBe('5 calls · 41 µs (82 %) · () → (5,)');
  expect([siteSign(costly), siteTone(costly)]).toEqual(['⚠', 'warning']);
  const looped = site({ looped: 5 });
  expect(siteBrief(looped)).toBe('5 × vmap · 41 µs · () → (5,)');
  expect([siteSign(looped), siteTone(looped)]).toEqual(['●', 'quiet']);
  const retraced = site({ hints: ['compiled 8 times'] });
  expect(siteBrief(retraced)).toBe('5 calls · compiled 8 times · 41 µs · () → (5,)');
  expect([siteSign(retraced), siteTone(retraced)]).toEqual(['●', 'quiet']);
  expect([siteSign(site()), siteTone(site())]).toEqual(['●', 'kept']);
});

test('different shapes of a site are counted', () => {
  const of = (...sizes: number[]): string =>
    siteFigures(site({ shapes: sizes.map(size => aVariant(`(${size},) → ()`)), host_ns: null }));
  expect([of(), of(2), of(2, 2), of(2, 3)]).toEqual([
    '5 calls',
    '5 calls · (2,) → ()',
    '5 calls · (2,) → ()',
    '5 calls · 2 shapes'
  ]);
  expect(of(...Array(100).keys())).toBe('5 calls · 100 or more shapes'); // the kernel sends no more
});

test('the text says how many batch elements a mask chose', () => {
  const masked = (calls: number): Site => {
    const shapes = [aVariant('(2,) → (2,)', { needed: 9, batch: 20 })];
    return site({ calls, shapes });
  };
  expect(siteFigures(masked(9))).toBe('9 of 20 · 41 µs · (2,) → (2,)');
  expect(siteFigures(masked(1))).toBe('1 call for 9 of 20 · 41 µs · (2,) → (2,)');
});

test('figures in the words of Python follow the calls; only the tooltip says those that are not brief', () => {
  const own = site({ figures: [['queued', true], ['slowest call 3 ms', false]] });
  expect(siteFigures(own)).toBe('5 calls · queued · 41 µs · () → (5,)');
  expect(siteBrief(own)).toBe(siteFigures(own));
  expect(siteDetails(own)).toEqual(['pure · 5 calls · queued · slowest call 3 ms · 41 µs · () → (5,)']);
});

test('the text of a line whose call does not return says for how long it has been running', () => {
  const own = { calls: 0, host_ns: 0, shapes: [], figures: [['running 14 s', true]] } as Partial<Site>;
  const hung = site({ ...own, consequence: 'running' });
  expect([siteSign(hung), toneOf(hung.consequence), siteBrief(hung)]).toEqual(['⚠', 'warning', 'running 14 s']);
  expect(siteBrief({ ...hung, calls: 3 })).toBe('3 calls · running 14 s');
  expect(siteDetails(hung)).toEqual(['pure · running 14 s']);
});

test('the text of a kept site includes its elided calls', () => {
  expect(siteBrief(site({ elided: 2 }))).toBe('5 calls · 41 µs · () → (5,) · 2 elided');
});

test('the text of an elided site gives the reason in one clause', () => {
  expect(siteBrief(UNUSED)).toBe('unused: nothing uses its result');
  expect([siteSign(UNUSED), toneOf(UNUSED.consequence)]).toEqual(['⚠', 'warning']);
});

test('other statuses are named', () => {
  expect(siteBrief(site({ consequence: 'hoisted', reason: 'it is the same' }))).toBe(
    'hoisted: it is the same'
  );
  expect(siteBrief(site({ consequence: 'unknown' }))).toBe('unknown');
});

test('the text of a site that raised is its error', () => {
  const failed = site({ consequence: 'raised', errors: ['ValueError: no luck', 'TypeError: x'] });
  expect(siteBrief(failed)).toBe('ValueError: no luck (+1)');
  expect([siteSign(failed), toneOf(failed.consequence)]).toEqual(['✕', 'error']);
});

test('the text of a site that returned NaN says so before its figures', () => {
  const text = siteBrief(site({ consequence: 'not_finite' }));
  expect(text).toBe('NaN or infinity · 5 calls · 41 µs · () → (5,)');
});

test('the text of a site of which some calls returned NaN counts all calls once', () => {
  const word = 'NaN or infinity in 2 of 5 calls, first: call 4';
  const text = siteBrief(site({ consequence: 'not_finite', word }));
  expect(text).toBe(`${word} · 41 µs · () → (5,)`);
  expect(siteDetails(site({ consequence: 'not_finite', word }))[0]).toBe(`pure · ${text}`);
});

test('the tone of several sites is that of the worst', () => {
  const failed = site({ consequence: 'raised' });
  expect(worstTone([site(), UNUSED, failed])).toBe('error');
  expect(worstTone([site({ consequence: 'hoisted' }), UNUSED])).toBe('warning');
  expect(worstTone([])).toBe('quiet');
});

test('the details list figures, reason, advice and every error', () => {
  expect(siteDetails({ ...UNUSED, errors: ['ValueError: no luck'] })).toEqual([
    'pure · unused · 0 calls · () → (5,)',
    'Nothing uses its result, so JAX removed the call.',
    'Return it.',
    'ValueError: no luck'
  ]);
});

test('the text of a callback gives its flavor, calls, sites and errors', () => {
  expect(callbackBrief(CALLBACK)).toBe('pure callback · 5 calls · 1 site');
  expect(callbackBrief({ ...CALLBACK, errors: 2 })).toMatch(/ · 2 errors$/);
});

test('sentences start with a capital letter, end with punctuation, and are omitted if empty', () => {
  expect(sentences('it is so', '', 'Is it?')).toEqual(['It is so.', 'Is it?']);
});

test('the time of calls in workers is their work, and the wall time that it took', () => {
  expect(siteFigures(site({ host_ns: 336e6, wall_ns: 89e6 }))).toBe('5 calls · 336 ms of work in 89 ms · () → (5,)');
});

test('the text of a slow vmap that loops has the number of its calls, and its tooltip the advice', () => {
  const proposals: Proposal[] = [['vmap_method="expand_dims"', 'vmap makes many calls', ['ordered']]];
  const looped = site({ calls: 12, looped: 12, host_ns: 3e6, proposals });
  expect(siteBrief(looped)).toBe('12 × vmap · 3 ms · () → (5,)');
  expect(siteDetails(looped).at(-1)).toBe('Vmap makes many calls.');
  const some = { ...looped, calls: 20 };
  expect(siteBrief(some)).toBe('20 calls, 12 × vmap · 3 ms · () → (5,)');
});
