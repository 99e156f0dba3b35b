import { describe, expect, test } from 'vitest';
import { TimeWindow } from '../../../../src/view/calls/timeline/window.js';

describe('TimeWindow', () => {
  test('grows with the recording until the user zooms', () => {
    const time = new TimeWindow();
    time.grow(1000);
    expect([time.from, time.to]).toEqual([0, 1000]);
    time.show(100, 300);
    time.grow(2000);
    expect([time.from, time.to]).toEqual([100, 300]);
    time.all();
    expect([time.from, time.to]).toEqual([0, 2000]);
  });

  test('zooms around a given time', () => {
    const time = new TimeWindow();
    time.grow(1000);
    time.zoom(0.5, 200);
    expect([time.from, time.to]).toEqual([100, 600]);
    time.zoom(100, 200);
    expect([time.from, time.to, time.zoomed]).toEqual([0, 1000, false]);
  });

  test('pans no further than the recording extends', () => {
    const time = new TimeWindow();
    time.grow(1000);
    time.show(100, 300);
    time.pan(-500);
    expect([time.from, time.to]).toEqual([0, 200]);
    time.pan(5000);
    expect([time.from, time.to]).toEqual([800, 1000]);
  });

  test('shows the calls first, with a part of a long compilation before them, then everything', () => {
    const time = new TimeWindow();
    time.grow(1000, -9000, 1200);
    expect([time.from, time.to]).toEqual([-250, 1000]);
    time.pan(-50);
    expect([time.from, time.to]).toEqual([-300, 950]);
    time.all();
    expect([time.from, time.to]).toEqual([-9000, 1200]);
    time.zoom(100, 0);
    time.pan(-50);
    expect([time.from, time.to]).toEqual([-9000, 1200]);
    time.all();
    expect([time.from, time.to]).toEqual([-250, 1000]);
  });

  test('has no room before the calls for compilations that ended long before them', () => {
    const time = new TimeWindow();
    time.grow(1000, -9000, 1000, -300);
    expect([time.from, time.to]).toEqual([0, 1000]);
    time.all();
    expect([time.from, time.to]).toEqual([-9000, 1000]);
    time.all();
    expect([time.from, time.to]).toEqual([0, 1000]);
  });

  test('zooms in no further than 20 ns', () => {
    const time = new TimeWindow();
    time.grow(1000);
    time.show(500, 500);
    expect(time.span).toBe(20);
  });

  test('pans to reveal a call only if the call is not visible', () => {
    const time = new TimeWindow();
    time.grow(1000);
    time.show(0, 100);
    time.reveal(50, 60);
    expect(time.from).toBe(0);
    time.reveal(500, 520);
    expect([time.from, time.to]).toEqual([460, 560]);
  });
});
