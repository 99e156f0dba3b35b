import { expect, test } from 'vitest';
import { TimeWindow } from '../../../../src/view/calls/timeline/window.js';

function open(...grown: Parameters<TimeWindow['grow']>): { time: TimeWindow; shown: () => number[] } {
  const time = new TimeWindow();
  time.grow(...grown);
  return { time, shown: () => [time.from, time.to] };
}

test('the window grows with the recording until the user zooms', () => {
  const { time, shown } = open(1000);
  expect(shown()).toEqual([0, 1000]);
  time.show(100, 300);
  time.grow(2000);
  expect(shown()).toEqual([100, 300]);
  time.all();
  expect(shown()).toEqual([0, 2000]);
});

test('it zooms around a given time, and no further than 20 ns and the recording', () => {
  const { time, shown } = open(1000);
  time.zoom(0.5, 200);
  expect(shown()).toEqual([100, 600]);
  time.zoom(100, 200);
  expect([...shown(), time.zoomed]).toEqual([0, 1000, false]);
  time.show(500, 500);
  expect(time.span).toBe(20);
});

test('it pans no further than the recording, and to a call only if that is not visible', () => {
  const { time, shown } = open(1000);
  time.show(100, 300);
  time.pan(-500);
  expect(shown()).toEqual([0, 200]);
  time.pan(5000);
  expect(shown()).toEqual([800, 1000]);
  time.reveal(850, 860);
  expect(shown()).toEqual([800, 1000]);
  time.reveal(490, 510);
  expect(shown()).toEqual([400, 600]);
});

test('it shows the calls first, with a part of a long compilation before them, then everything', () => {
  const { time, shown } = open(1000, 0, [[-9000, -10], [900, 1200]]);
  expect(shown()).toEqual([-250, 1000]);
  time.all();
  expect(shown()).toEqual([-9000, 1200]);
  time.all();
  expect(shown()).toEqual([-250, 1000]);
});

test('it has no room before the calls for compilations that ended long before them', () => {
  const { time, shown } = open(1000, 0, [[-9000, -300]]);
  expect(shown()).toEqual([0, 1000]);
  time.all();
  expect(shown()).toEqual([-9000, 1000]);
});
