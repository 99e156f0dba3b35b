import { expect, test } from 'vitest';
import { Geometry, type Theme } from '../../../../src/view/calls/timeline/canvas.js';
import { byDuration, bySite, Picture, rampEdges } from '../../../../src/view/calls/timeline/picture.js';
import { Tracks } from '../../../../src/view/calls/timeline/tracks.js';
import { type Call, storeOf } from '../stores.js';

const THEME = {
  sites: ['site 0', 'site 1'],
  durations: ['d0', 'd1', 'd2', 'd3', 'd4', 'd5', 'd6'],
  mixed: 'mixed'
} as unknown as Theme;

function picture(calls: readonly Call[]) {
  const store = storeOf(calls);
  const tracks = new Tracks(store);
  tracks.grow();
  return { store, tracks, track: tracks.all[0]![0]! };
}

test('calls have the color of their site, or gray for several sites and unknown sites', () => {
  const variants = [0, 0, 1, 0, 1, 1, 9];
  const { store, track } = picture(variants.map((variant, n) => ({ start: 20 * n, variant })));
  const colour = bySite(store, THEME);
  const ranges = [[0, 1], [2, 3], [6, 7], [0, 3], [4, 6], [0, 6]];
  const colours = ranges.map(([place, next]) => colour(track, place!, next!));
  expect(colours).toEqual(['site 0', 'site 1', 'mixed', 'site 0', 'site 1', 'mixed']);
});

test('or that of their duration, of several calls the mean, on a logarithmic scale', () => {
  const { track } = picture([1, 1, 128, 128].map((duration, n) => ({ start: 200 * n, duration })));
  const colour = byDuration(THEME, [1, 128]);
  const ranges = [[0, 1], [2, 3], [0, 2], [1, 3], [0, 3]];
  const colours = ranges.map(([place, next]) => colour(track, place!, next!));
  expect(colours).toEqual(['d0', 'd6', 'd0', 'd6', 'd5']); // the means are 64.5 and 43
  expect(rampEdges([1, 128]).map(Math.round)).toEqual([1, 2, 4, 8, 16, 32, 64, 128]);
});

test.each([[0, 0], [5, 5], [0, 7]])('durations from %d to %d have colors', (...range) => {
  const { track } = picture([0, ...range].map((duration, n) => ({ start: 20 * n, duration })));
  const colour = byDuration(THEME, range);
  expect([0, 1, 2].map(n => THEME.durations.includes(colour(track, n, n + 1)))).toEqual(Array(3).fill(true));
  expect(rampEdges(range).every(Number.isFinite)).toBe(true);
});

/** From where to where crossings are outlined, with a pixel for a nanosecond from `from` on. */
function outlines(calls: readonly Call[], from = 0): number[][] {
  const { store, tracks } = picture(calls);
  const drawn: number[][] = [];
  const methods: Record<string, unknown> = {
    strokeRect: (x: number, _: number, width: number) => drawn.push([x - 128, x + width - 128]),
    measureText: () => ({ width: 0 })
  };
  const pen = new Proxy(methods, { get: (target, name: string) => target[name] ?? (() => undefined) });
  const at = new Geometry(1000, 100, 0, 1, 0, 0, { from, to: from + 864, span: 864 });
  const context = pen as unknown as CanvasRenderingContext2D;
  new Picture(context, at, THEME, store, tracks, bySite(store, THEME)).paint(null, null);
  return drawn;
}

const call = (crossing: number, duration = 20) => (start: number): Call => ({ start, duration, crossing });

test('a crossing is outlined from the start of its first call to the end of its last one', () => {
  const calls = [...[10, 100].map(call(1)), ...[200, 300, 400].map(call(2)), call(3)(500)];
  expect(outlines(calls)).toEqual([[8.5, 121.5], [198.5, 421.5]]);
});

test('outlines do not overlap, and are open where the crossing goes on', () => {
  const calls = [...[10, 30].map(call(1)), ...[50, 70].map(call(2))];
  expect(outlines(calls)).toEqual([[8.5, 51.5], [52.5, 91.5]]);
  const [[from, to], ...others] = outlines([0, 400, 1400].map(call(1)), 300) as [number[]];
  expect([from! < -10, to! > 864 + 10, others]).toEqual([true, true, []]);
});

test('narrow crossings have no outline', () => {
  expect(outlines([0, 2].map(call(1, 2)))).toEqual([]);
  expect(outlines([0, 4].map(call(1, 2)))).toEqual([[-1.5, 7.5]]);
});
