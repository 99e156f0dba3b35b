import { describe, expect, test } from 'vitest';
import { ROW, Scroll } from '../../../../src/view/calls/table/scroll.js';

describe('Scroll', () => {
  function scroll(rows: number, height = 10 * ROW): Scroll {
    const made = new Scroll();
    made.fit(rows, height);
    return made;
  }

  test('gives every row its full height if there are few', () => {
    const few = scroll(100);
    few.scrolled(50 * ROW);
    expect([few.room, ...few.visible, few.y(50)]).toEqual([100 * ROW, 50, 60, 50 * ROW]);
  });

  test('reaches the last and the first of many rows', () => {
    const many = scroll(1_000_000);
    expect(many.room).toBeLessThan(17_000_000);
    many.scrolled(many.room - 10 * ROW);
    expect(many.visible).toEqual([999_990, 1_000_000]);
    many.scrolled(0);
    expect(many.visible).toEqual([0, 10]);
  });

  test('shows the last row at the end of the scroll bar, whatever the previous position', () => {
    const many = scroll(1_000_000);
    const end = many.room - 10 * ROW;
    many.scrolled(end - 100);
    many.scrolled(end);
    expect(many.y(999_999) + ROW).toBe(many.room);
  });

  test('skips no rows in small steps', () => {
    const many = scroll(1_000_000);
    many.scrolled(3_000_000);
    const [first] = many.visible;
    many.scrolled(3_000_000 + 3 * ROW);
    expect(many.visible[0]).toBe(first + 3);
    expect(many.y(first + 3)).toBeCloseTo(3_000_000 + 3 * ROW, -2);
  });

  test('scales jumps of the scroll bar', () => {
    const many = scroll(1_000_000);
    many.scrolled((many.room - 10 * ROW) / 2);
    expect(many.visible[0]).toBe(499_995);
  });

  test('scrolls just far enough to reveal a row', () => {
    const few = scroll(100);
    expect(few.reveal(9)).toBeNull();
    expect(few.reveal(10)).toBe(ROW);
    expect(few.reveal(0)).toBe(0);
    const many = scroll(1_000_000);
    many.scrolled(many.reveal(777_777)!);
    expect(many.visible[1]).toBe(777_778);
  });

  test('stays in range when rows are removed', () => {
    const few = scroll(100);
    few.scrolled(90 * ROW);
    few.fit(5, 10 * ROW);
    expect(few.visible).toEqual([0, 5]);
  });
});
