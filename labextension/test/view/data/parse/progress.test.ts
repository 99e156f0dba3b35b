import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { parseProgress } from '../../../../src/view/data/parse/parse.js';
import { aSite, changed, someProgress } from '../../recordings.js';

const PROGRESS = someProgress({
  running: [{ function: 'f', where: 'line 3', element: -1, thread: 'MainThread', elapsed_ns: 1 }],
  sites: [
    aSite({ errors: ['2 failed'], host_ns: 9 })
  ]
});

describe('parseProgress', () => {
  it('returns valid progress', () => {
    expect(parseProgress(structuredClone(PROGRESS))).toEqual(PROGRESS);
  });

  it('reads what Python sends without loss', () => {
    const { progress } = JSON.parse(readFileSync('../tests/data/messages.json', 'utf8'));
    expect(parseProgress(progress)).toEqual(progress);
    expect([progress.sites.length, progress.running.length]).toEqual([2, 1]);
  });

  it.each([
    ['rate', Infinity, 'progress.rate is Infinity, not a finite number'],
    ['expected', 'all', 'progress.expected is "all", not a whole number'],
    ['running.0.element', -2, 'progress.running[0].element is -2, not a whole number'],
    ['sites.0.where', undefined, 'progress.sites[0].where is missing.']
  ])('rejects progress whose %s is %j', (path, value, message) => {
    expect(() => parseProgress(changed(PROGRESS, path, value))).toThrow(message);
  });

  it('reads a bounded number of sites and running calls', () => {
    const many = parseProgress({
      ...PROGRESS,
      sites: Array(9_999).fill(PROGRESS.sites[0]),
      running: Array(9_999).fill(PROGRESS.running[0])
    });
    expect([many.sites.length, many.running.length]).toEqual([2_000, 100]);
  });
});
