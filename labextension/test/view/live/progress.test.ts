import { describe, expect, it } from 'vitest';

import {
  Announcer,
  elapsedWords,
  percentDone,
  progressSiteWords,
  progressWords,
  runningWords,
  stillRunning
} from '../../../src/view/live/progress.js';
import { aSite, someProgress } from '../recordings.js';

const slow = { function: 'f', where: 'line 3', element: 2, thread: 'Thread-1', elapsed_ns: 6.2e9 };
const quick = { ...slow, element: -1, elapsed_ns: 6e8 };

describe('progressWords', () => {
  it('gives calls, rate, time and the time left', () => {
    expect(progressWords(someProgress())).toBe(
      '431 of 10,000 calls · 2,310 calls/s · 3.2 s, about 4 s left'
    );
  });

  it.each([
    [2, 'about 1 s left'],
    [200, 'about 100 s left'],
    [300, 'about 3 min left'],
    [20_000, 'about 3 h left']
  ])('estimates the time for %j calls more at 2 calls/s', (more, words) => {
    const progress = someProgress({ calls: 5, expected: 5 + more, rate: 2 });
    expect(progressWords(progress)).toMatch(new RegExp(`, ${words}$`));
  });

  it('does not estimate the last second, nor an unknown total', () => {
    expect(progressWords(someProgress({ calls: 9_999 }))).not.toContain('left');
    expect(progressWords(someProgress({ expected: null }))).not.toContain('left');
    expect(progressWords(someProgress({ rate: 0 }))).not.toContain('left');
  });

  it('omits the expected calls if they are unknown or already exceeded', () => {
    expect(progressWords(someProgress({ expected: null }))).toMatch(/^431 calls ·/);
    expect(progressWords(someProgress({ expected: 400 }))).toMatch(/^431 calls ·/);
  });

  it('counts the calls of the run under way in a Python loop, and estimates no end', () => {
    const progress = someProgress({ calls: 2018, expected: 100, run: 21, rate: 310 });
    expect(progressWords(progress)).toBe('run 21 · 18 of 100 calls · 310 calls/s · 3.2 s');
    expect(percentDone(progress)).toBeNull();
  });

  it('has no rate before the first call has returned', () => {
    const first = someProgress({ calls: 0, expected: 1, rate: 0 });
    expect(progressWords(first)).toBe('0 of 1 call · 3.2 s');
  });

  it('rounds low rates to a tenth', () => {
    expect(progressWords(someProgress({ rate: 0.24 }))).toContain('0.2 calls/s');
  });
});

describe('elapsedWords', () => {
  it.each([
    [0, '0.0 s'],
    [3.24e9, '3.2 s'],
    [59.96e9, '1 min 0 s'],
    [72e9, '1 min 12 s'],
    [3_720e9, '1 h 2 min']
  ])('formats %d ns as %s', (ns, words) => {
    expect(elapsedWords(ns)).toBe(words);
  });
});

describe('percentDone', () => {
  it.each([
    [5, 10, 50],
    [11, 10, 100],
    [5, null, null],
    [0, 0, null]
  ])('of %j of %j calls is %j', (calls, expected, percent) => {
    expect(percentDone(someProgress({ calls, expected }))).toBe(percent);
  });
});

describe('the texts of rows', () => {
  it('give the function, location, element and thread of a running call', () => {
    expect(runningWords(slow)).toBe('f, line 3 · element 2 · Thread-1');
    expect(runningWords(quick)).toBe('f, line 3 · Thread-1');
  });

  it('have a warning sign after five seconds', () => {
    expect(stillRunning(quick)).toBe('still running, 0.6 s');
    expect(stillRunning(slow)).toBe('⚠ still running, 6.2 s');
  });

  it('count the failed calls of a site', () => {
    const site = aSite({ calls: 41, host_ns: 2e6 });
    expect(progressSiteWords(site)).toBe('41 calls · 2 ms');
    expect(progressSiteWords({ ...site, errors: ['2 failed'] })).toBe('41 calls · ✕ 2 failed · 2 ms');
  });
});

describe('Announcer', () => {
  const at = (elapsed_ns: number, running = [quick]) => someProgress({ elapsed_ns, running });

  it('announces progress at once, then every ten seconds', () => {
    const announcer = new Announcer();
    expect(announcer.next(at(1e9))).toContain('431 of 10,000 calls');
    expect(announcer.next(at(1.1e9))).toBeNull();
    expect(announcer.next(at(10.9e9))).toBeNull();
    expect(announcer.next(at(11e9))).toContain('431 of 10,000 calls');
  });

  it('announces a slow call immediately, and only once', () => {
    const announcer = new Announcer();
    announcer.next(at(1e9));
    expect(announcer.next(at(1.1e9, [slow]))).toBe(
      'f, line 3 · element 2 · Thread-1 has been running for 6.2 s'
    );
    expect(announcer.next(at(1.2e9, [slow]))).toBeNull();
  });

  it('announces progress again when the clock restarts', () => {
    const announcer = new Announcer();
    announcer.next(at(9e9));
    expect(announcer.next(at(1e9))).not.toBeNull();
  });
});
