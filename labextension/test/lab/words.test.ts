import { expect, test } from 'vitest';
import type { CallSite } from '../../src/lab/kernel/snapshot.js';
import {
  callbackBrief,
  sentences,
  siteBrief,
  siteDetails,
  siteSign,
  siteTone
} from '../../src/lab/words.js';
import { CALLBACK, SITE } from './made.js';

function site(parts: Partial<CallSite> = {}): CallSite {
  return { ...SITE, fate: 'live', ...parts };
}

const UNUSED = site({
  fate: 'unused',
  calls: 0,
  elided: 1,
  reason: 'its result is never used, so JAX dropped the call',
  remedy: 'return it'
});

test('a live site says its calls, shapes and time', () => {
  expect(siteBrief(site())).toBe('5 calls · () → (5,) · 41 µs');
});

test('a live site that a program does without in places says so', () => {
  expect(siteBrief(site({ elided: 2 }))).toBe('5 calls · () → (5,) · 41 µs · 2 elided');
});

test('an elided site says why, in one clause', () => {
  expect(siteBrief(UNUSED)).toBe('elided: its result is never used');
  expect([siteSign(UNUSED), siteTone(UNUSED)]).toEqual(['✕', 'elided']);
});

test('other fates are called by their names', () => {
  expect(siteBrief(site({ fate: 'hoisted', reason: 'it is the same' }))).toBe(
    'hoisted: it is the same'
  );
  expect(siteBrief(site({ fate: 'unknown' }))).toBe('unknown');
});

test('an error comes before everything else', () => {
  const failed = site({ errors: ['ValueError: no luck', 'TypeError: x'] });
  expect(siteBrief(failed)).toBe('ValueError: no luck (+1)');
  expect([siteSign(failed), siteTone(failed)]).toEqual(['✕', 'error']);
});

test('the details say all: figures, reason, remedy and each error', () => {
  expect(siteDetails({ ...UNUSED, errors: ['ValueError: no luck'] })).toEqual([
    'pure · elided · 0 calls · () → (5,)',
    'Its result is never used, so JAX dropped the call.',
    'Return it.',
    'ValueError: no luck'
  ]);
});

test('a callback says its flavor, calls, sites and errors', () => {
  expect(callbackBrief(CALLBACK)).toBe('pure callback · 5 calls · 1 site');
  expect(callbackBrief({ ...CALLBACK, errors: 2 })).toMatch(/ · 2 errors$/);
});

test('sentences begin with a capital, end with a stop, and are left out if empty', () => {
  expect(sentences('it is so', '', 'Is it?')).toEqual(['It is so.', 'Is it?']);
});
