import { expect, test } from 'vitest';
import type { Drawing } from '../../../../../src/view/calls/timeline/picture/bars.js';
import { paintCrossings } from '../../../../../src/view/calls/timeline/picture/crossings.js';
import { Geometry } from '../../../../../src/view/calls/timeline/picture/geometry.js';
import { Tracks } from '../../../../../src/view/calls/timeline/tracks/tracks.js';
import { type Call, storeOf } from '../../stores.js';

const GUTTER = 128;

/** From where to where outlines are drawn, with a pixel for a nanosecond from `from` on. */
function outlines(calls: readonly Call[], from = 0): number[][] {
  const tracks = new Tracks(storeOf(calls));
  tracks.grow();
  const drawn: number[][] = [];
  const strokeRect = (x: number, _: number, width: number) =>
    drawn.push([x - GUTTER, x + width - GUTTER]);
  const ignored = Object.fromEntries(
    ['fillRect', 'save', 'beginPath', 'rect', 'clip', 'restore'].map(name => [name, () => undefined])
  );
  const pen = { ...ignored, strokeRect };
  const window = { from, to: from + 864, span: 864 };
  const at = new Geometry(1000, 100, 0, 1, 0, 0, window);
  paintCrossings({ pen, at, theme: { muted: '#888' } } as unknown as Drawing, tracks.of(0)[0]!, 0);
  return drawn;
}

const call = (crossing: number) => (start: number): Call => ({ start, duration: 20, crossing });

test('a crossing is outlined from the start of its first call to the end of its last one', () => {
  const calls = [...[10, 100].map(call(1)), ...[200, 300, 400].map(call(2)), call(3)(500)];
  expect(outlines(calls)).toEqual([[8.5, 121.5], [198.5, 421.5]]);
});

test('crossings that follow each other at once have outlines that do not overlap', () => {
  const calls = [...[10, 30].map(call(1)), ...[50, 70].map(call(2))];
  expect(outlines(calls)).toEqual([[8.5, 51.5], [52.5, 91.5]]);
});

test('the outline of a crossing that began before the time shown, or goes on after it, is open', () => {
  const [[from, to], ...others] = outlines([0, 400, 1400].map(call(1)), 300) as [number[]];
  expect(from).toBeLessThan(-10);
  expect(to).toBeGreaterThan(864 + 10);
  expect(others).toEqual([]);
});

test('narrow crossings have no outline', () => {
  const brief = (start: number): Call => ({ start, duration: 2, crossing: 1 });
  expect(outlines([0, 2].map(brief))).toEqual([]);
  expect(outlines([0, 4].map(brief))).toEqual([[-1.5, 7.5]]);
});
