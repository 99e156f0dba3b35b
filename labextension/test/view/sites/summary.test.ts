import { describe, expect, it } from 'vitest';

import type { Facts, Measured } from '../../../src/view/data/schema.js';
import { summaryLine } from '../../../src/view/sites/summary.js';
import { aSite, aVariant, someFacts, someMeasured, unusedSite } from '../recordings.js';

function words(facts: Facts, measured: Measured = someMeasured()): string {
  return summaryLine(facts, measured).textContent ?? '';
}

describe('summaryLine', () => {
  it('shows name, flavor, calls, shapes and time', () => {
    const measured = someMeasured({ host_ns: [41_000] });
    expect(words(someFacts(), measured)).toBe('bessel · pure · 1 call · () → (5,) · 41 µs');
  });

  it('omits times that were not saved', () => {
    expect(words(someFacts())).toBe('bessel · pure · 1 call · () → (5,)');
  });

  it('shows elided calls with a short reason', () => {
    expect(words(someFacts([unusedSite()]))).toBe(
      'bessel · pure · 0 calls · ✕ 1 elided: result unused'
    );
  });

  it('omits the reason if the elided calls have several', () => {
    const sites = [unusedSite(), unusedSite({ status: 'optimized_away' })];
    expect(words(someFacts(sites))).toContain('✕ 2 elided');
    expect(words(someFacts(sites))).not.toContain('elided:');
  });

  it('shows the first error and the number of errors', () => {
    const site = aSite({ errors: ['ValueError: no luck\nmore', 'KeyError'] });
    expect(words(someFacts([site]))).toContain('✕ ValueError: no luck and 1 more');
  });

  it('shows the last line of a traceback', () => {
    const site = aSite({ errors: ['Traceback (most recent call last):\n  f\nValueError: no\n'] });
    expect(words(someFacts([site]))).toContain('✕ ValueError: no');
  });

  it('adds up the sites of one function', () => {
    const sites = [aSite({ calls: 2 }), aSite({ calls: 3, shapes: [aVariant([[2]], [[2]])] })];
    const measured = someMeasured({ host_ns: [1_000, 2_000] });
    expect(words(someFacts(sites), measured)).toBe('bessel · pure · 5 calls · 2 shapes · 3 µs');
  });

  it('lists functions separately', () => {
    const sites = [aSite(), aSite({ function: 'log', flavor: 'io', shapes: [] })];
    expect(words(someFacts(sites))).toBe(
      'bessel · pure · 1 call · () → (5,)   log · io · 1 call'
    );
  });

  it('names the first of many functions, and counts the others', () => {
    const sites = Array.from({ length: 9 }, (_, place) => aSite({ function: `f${place}` }));
    expect(words(someFacts(sites))).toMatch(/f3.*and 5 more functions$/);
  });

  it('includes elided calls and errors of the functions that are not named', () => {
    const names = ['f0', 'f1', 'f2', 'f3', 'f4', 'f5'].map(name => ({ function: name }));
    const sites = names.map(name => aSite(name));
    sites[4] = unusedSite(names[4]);
    sites[5] = aSite({ ...names[5], errors: ['ValueError: no luck'] });
    expect(words(someFacts(sites))).toMatch(
      /and 2 more functions · ✕ 1 elided: result unused · ✕ ValueError: no luck$/
    );
  });

  it('counts the calls of one run if nothing ran', () => {
    const site = aSite({ expected: 5 });
    expect(words(someFacts([site], { ahead: true }))).toContain('5 calls per run');
    const unknown = aSite({ expected: null });
    expect(words(someFacts([site, unknown], { ahead: true }))).toContain('calls depend on data');
  });

  it('reads "no callbacks" for an empty recording', () => {
    expect(words(someFacts([]))).toBe('no callbacks');
  });
});
