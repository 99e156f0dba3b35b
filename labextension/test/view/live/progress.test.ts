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
import { someProgress } from '../recordings.js';

const slow = { function: 'f', where: 'line 3', element: 2, thread: 'Thread-1', elapsed_ns: 6.2e9 };
const quick = { ...slow, element: -1, elapsed_ns: 6e8 };

describe('progressWords', () => {
  it('tells calls, rate and time', () => {
    expect(progressWords(someProgress())).toBe('431 of 10,000 calls · 2,310 calls/s · 3.2 s');
  });

  it('leaves expected calls out that are not known, or were too few', () => {
    expect(progressWords(someProgress({ expected: null }))).toMatch(/^431 calls ·/);
    expect(progressWords(someProgress({ expected: 400 }))).toMatch(/^431 calls ·/);
  });

  it('has no rate before a call has come back', () => {
    const first = someProgress({ calls: 0, expected: 1, rate: 0 });
    expect(progressWords(first)).toBe('0 of 1 call · 3.2 s');
  });

  it('rounds slow rates to a tenth', () => {
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
  ])('writes %d ns as %s', (ns, words) => {
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

describe('the words of rows', () => {
  it('name function, place, element and thread of a running call', () => {
    expect(runningWords(slow)).toBe('f, line 3 · element 2 · Thread-1');
    expect(runningWords(quick)).toBe('f, line 3 · Thread-1');
  });

  it('warn after five seconds', () => {
    expect(stillRunning(quick)).toBe('still running, 0.6 s');
    expect(stillRunning(slow)).toBe('⚠ still running, 6.2 s');
  });

  it('tell failures of a site', () => {
    const named = { function: 'f', flavor: 'io', where: '', line: 0, column: 0 };
    const site = { ...named, calls: 41, errors: 0, host_ns: 2e6 };
    expect(progressSiteWords(site)).toBe('41 calls · 2 ms');
    expect(progressSiteWords({ ...site, errors: 2 })).toBe('41 calls · ✕ 2 failed · 2 ms');
  });
});

describe('Announcer', () => {
  const at = (elapsed_ns: number, running = [quick]) => someProgress({ elapsed_ns, running });

  it('speaks first at once, then every ten seconds', () => {
    const announcer = new Announcer();
    expect(announcer.next(at(1e9))).toContain('431 of 10,000 calls');
    expect(announcer.next(at(1.1e9))).toBeNull();
    expect(announcer.next(at(10.9e9))).toBeNull();
    expect(announcer.next(at(11e9))).toContain('431 of 10,000 calls');
  });

  it('tells of a slow call at once, and once', () => {
    const announcer = new Announcer();
    announcer.next(at(1e9));
    expect(announcer.next(at(1.1e9, [slow]))).toBe(
      'f, line 3 · element 2 · Thread-1 has been running for 6.2 s'
    );
    expect(announcer.next(at(1.2e9, [slow]))).toBeNull();
  });

  it('speaks again when the clock starts anew', () => {
    const announcer = new Announcer();
    announcer.next(at(9e9));
    expect(announcer.next(at(1e9))).not.toBeNull();
  });
});
