import { describe, expect, test } from 'vitest';
import { ROW, Scroll } from '../../../src/view/table/scroll.js';

describe('Scroll', () => {
  function scroll(rows: number, height = 10 * ROW): Scroll {
    const made = new Scroll();
    made.fit(rows, height);
    return made;
  }

  test('has room for every row while there are few', () => {
    const few = scroll(100);
    few.scrolled(50 * ROW);
    expect([few.room, ...few.visible, few.y(50)]).toEqual([100 * ROW, 50, 60, 50 * ROW]);
  });

  test('reaches the last of many rows, and the first again', () => {
    const many = scroll(1_000_000);
    expect(many.room).toBeLessThan(17_000_000);
    many.scrolled(many.room - 10 * ROW);
    expect(many.visible).toEqual([999_990, 1_000_000]);
    many.scrolled(0);
    expect(many.visible).toEqual([0, 10]);
  });

  test('is at the last row where the scroll bar ends, however it came there', () => {
    const many = scroll(1_000_000);
    const end = many.room - 10 * ROW;
    many.scrolled(end - 100);
    many.scrolled(end);
    expect(many.y(999_999) + ROW).toBe(many.room);
  });

  test('passes over no row when it scrolls by a little', () => {
    const many = scroll(1_000_000);
    many.scrolled(3_000_000);
    const [first] = many.visible;
    many.scrolled(3_000_000 + 3 * ROW);
    expect(many.visible[0]).toBe(first + 3);
    expect(many.y(first + 3)).toBeCloseTo(3_000_000 + 3 * ROW, -2);
  });

  test('jumps with the scroll bar', () => {
    const many = scroll(1_000_000);
    many.scrolled((many.room - 10 * ROW) / 2);
    expect(many.visible[0]).toBe(499_995);
  });

  test('moves to a row that is not visible, and no further than it must', () => {
    const few = scroll(100);
    expect(few.reveal(9)).toBeNull();
    expect(few.reveal(10)).toBe(ROW);
    expect(few.reveal(0)).toBe(0);
    const many = scroll(1_000_000);
    many.scrolled(many.reveal(777_777)!);
    expect(many.visible[1]).toBe(777_778);
  });

  test('stays inside when rows go away', () => {
    const few = scroll(100);
    few.scrolled(90 * ROW);
    few.fit(5, 10 * ROW);
    expect(few.visible).toEqual([0, 5]);
  });
});
