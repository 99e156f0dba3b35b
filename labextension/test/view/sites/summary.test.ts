import { describe, expect, it } from 'vitest';

import type { Facts, Measured } from '../../../src/view/data/schema.js';
import { summaryLine } from '../../../src/view/sites/summary.js';
import { aProfile } from '../profile/profiles.js';
import { aSite, someFacts, someMeasured, unusedSite } from '../recordings.js';

function words(facts: Facts, measured: Measured = someMeasured()): string {
  return summaryLine(facts, measured).textContent ?? '';
}

describe('summaryLine', () => {
  const headline = [['error', '✕ boom raised ValueError: <b>'], ['kept', 'model 3 calls']] as const;

  it('shows the parts of the headline as plain text, each in its tone, and the time', () => {
    const facts = someFacts([aSite({ host_ns: 41_000 })], { headline });
    const line = summaryLine(facts, someMeasured());
    expect(line.textContent).toBe('✕ boom raised ValueError: <b> · model 3 calls · 41 µs');
    expect(line.querySelector('.jaxcb-tone-error')!.textContent).toBe(headline[0][1]);
  });

  it('omits times that were not saved', () => {
    expect(words(someFacts())).toBe('bessel');
  });

  it('omits the time if nothing was called', () => {
    expect(words(someFacts([unusedSite({ host_ns: 0 })]))).toBe('bessel');
  });

  it('says the time in the words of Python', () => {
    const facts = someFacts([aSite({ host_ns: 167e6 })]);
    const time = '167 ms of 5.3 s';
    const line = summaryLine(facts, someMeasured({ time }));
    expect(line.textContent).toBe('bessel · 167 ms of 5.3 s');
    expect(line.querySelector('.jaxcb-summary-time')!.textContent).toBe(time); // unbroken
    const profiled = someMeasured({ time: '167 ms', profile: aProfile() });
    expect(words(facts, profiled)).toBe('bessel · 167 ms · 1 s wall time, 80 % host functions');
  });

  it('counts calls and call sites if the recording was saved without a headline', () => {
    const sites = [aSite({ calls: 2 }), aSite({ calls: 3 })];
    expect(words(someFacts(sites, { headline: [] }))).toBe('5 calls of 2 call sites');
    expect(words(someFacts([], { headline: [] }))).toBe('no callbacks');
  });

  it('ends with the wall time of a profile, and what took most of it', () => {
    const facts = someFacts([aSite({ host_ns: 41_000 })]);
    expect(words(facts, someMeasured({ profile: aProfile() }))).toBe('bessel · 41 µs · 1 s wall time, 80 % host functions');
    const empty = aProfile({ kinds: [], parts: [], lanes: [] });
    expect(words(someFacts(), someMeasured({ profile: empty }))).toBe('bessel · 1 s wall time');
  });

  it('is the headline of the profile of a program without callbacks', () => {
    const facts = someFacts([], { headline: [] });
    expect(words(facts, someMeasured({ profile: aProfile() }))).toBe(aProfile().headline);
  });
});
