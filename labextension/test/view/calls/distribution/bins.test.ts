import { describe, expect, test } from 'vitest';
import { binOf, edgesOf } from '../../../../src/view/calls/distribution/bins.js';

describe('edgesOf', () => {
  test('are round and equally far apart on a logarithmic scale', () => {
    expect(edgesOf(1000, 9_000_000, 1).slice(0, 7)).toEqual([
      1000, 1250, 1600, 2000, 2500, 3150, 4000
    ]);
    expect(edgesOf(1, 1e9, 1).slice(-4)).toEqual([1e8, 3.15e8, 1e9, 3.15e9]);
  });

  test.each([
    [0, 0, 1], [0, 0, 100], [0, 5e6, 100], [1, 1, 1], [7, 8, 1], [999, 1000, 1], [1000, 1000, 1],
    [100, 4e18, 1e9], [3e9, 3.01e9, 1], [500, 2000, 100], [1e-3, 1e-3, 1e-3], [20, 4e9, 1]
  ])('contain all durations from %d to %d ns in units of %d ns', (least, most, unit) => {
    const edges = edgesOf(least, most, unit);
    expect(edges[0]).toBeLessThanOrEqual(least);
    expect(edges.at(-1)).toBeGreaterThan(most);
    expect(edges.every((edge, n) => n === 0 || edge > edges[n - 1]!)).toBe(true);
    expect(edges.length).toBeLessThan(60);
  });

  test('are no closer than two units, so that rounding leaves no bin empty', () => {
    const edges = edgesOf(100, 4000, 100);
    const widths = edges.slice(1).map((edge, n) => edge - edges[n]!);
    expect(Math.min(...widths)).toBe(200);
    expect(edges.every(edge => edge % 100 === 0)).toBe(true);
  });

  test('are farther apart if there are few calls', () => {
    const all = edgesOf(1000, 9_000_000, 1);
    const few = edgesOf(1000, 9_000_000, 1, 20);
    expect(few.slice(0, 3)).toEqual([1000, 1600, 2500]);
    expect(edgesOf(1000, 9_000_000, 1, 1_000_000)).toEqual(all);
  });

  test('leave room around equal durations', () => {
    const edges = edgesOf(20_000, 20_000, 1);
    const bin = binOf(edges, 20_000);
    expect(edges.length).toBeGreaterThan(12);
    expect(bin).toBeGreaterThan(4);
    expect(edges.length - bin).toBeGreaterThan(4);
  });
});

test('binOf finds the bin from whose edge a duration is before the next edge', () => {
  const edges = [0, 100, 200, 500];
  expect([0, 99, 100, 199, 200, 499].map(ns => binOf(edges, ns))).toEqual([0, 0, 1, 1, 2, 2]);
});
