import { describe, expect, it } from 'vitest';

import { Lane } from '../../../src/view/profile/lane.js';

describe('Lane', () => {
  const lane = new Lane('worker 1', [0, 10, 3, 10, 5, 4, 30, 10, 5], -5);

  it('has its spans on the axis of the calls', () => {
    const spans = [0, 1, 2].map(place => [lane.start(place), lane.end(place), lane.part(place)]);
    expect(spans).toEqual([[-5, 5, 3], [5, 10, 4], [25, 35, 5]]);
  });

  it('finds the first span that starts at a time, and the first that has not ended', () => {
    expect([-9, 5, 6, 99].map(ns => lane.firstFrom(ns))).toEqual([0, 1, 2, 3]);
    expect([-9, 0, 5, 20, 30, 99].map(ns => lane.firstOpen(ns))).toEqual([0, 0, 1, 2, 2, 3]);
  });

  it('finds the span at a time, or the nearest one within reach', () => {
    expect([0, 5, 11, 23, 17, 36, 99].map(ns => lane.at(ns, 4))).toEqual([0, 1, 1, 2, null, 2, null]);
  });
});
