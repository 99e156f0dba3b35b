import { expect, test } from 'vitest';
import { ROW, Scroll } from '../../../../src/view/calls/table/scroll.js';

function scroll(rows: number): Scroll {
  const made = new Scroll();
  made.fit(rows, 10 * ROW);
  return made;
}

test('few rows have their full height, and stay in range when rows are removed', () => {
  const few = scroll(100);
  few.scrolled(50 * ROW);
  expect([few.room, ...few.visible, few.y(50)]).toEqual([100 * ROW, 50, 60, 50 * ROW]);
  few.fit(5, 10 * ROW);
  expect(few.visible).toEqual([0, 5]);
});

test('the bar reaches the first and the last of many rows, whatever its previous position', () => {
  const many = scroll(1_000_000);
  const end = many.room - 10 * ROW;
  expect(many.room).toBeLessThan(17_000_000);
  many.scrolled(end - 100);
  many.scrolled(end);
  expect([...many.visible, many.y(999_999) + ROW]).toEqual([999_990, 1_000_000, many.room]);
  many.scrolled(end / 2);
  expect(many.visible[0]).toBe(499_995);
  many.scrolled(0);
  expect(many.visible).toEqual([0, 10]);
});

test('small steps skip no rows', () => {
  const many = scroll(1_000_000);
  many.scrolled(3_000_000);
  const [first] = many.visible;
  many.scrolled(3_000_000 + 3 * ROW);
  expect(many.visible[0]).toBe(first + 3);
  expect(many.y(first + 3)).toBeCloseTo(3_000_000 + 3 * ROW, -2);
});

test('it scrolls just far enough to reveal a row', () => {
  const few = scroll(100);
  expect([9, 10, 0].map(place => few.reveal(place))).toEqual([null, ROW, 0]);
  const many = scroll(1_000_000);
  many.scrolled(many.reveal(777_777)!);
  expect(many.visible[1]).toBe(777_778);
});
