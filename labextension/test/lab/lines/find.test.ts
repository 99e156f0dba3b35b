import { expect, test } from 'vitest';
import { findLine, type CellText } from '../../../src/lab/lines/find.js';
import type { Target } from '../../../src/view/sites/row.js';

const TARGET: Target = { cell: 'ran', line: 2, source: 'y = f(1)', elsewhere: false };
const SOURCE = 'import x\n  y = f(1)\nz = f(2)';

function cellText(id: string, text: string, tracked: number | null = null): CellText {
  return { id, text, tracked: () => tracked };
}

/** [cell, line] of the target, and the doubt if there is one. */
function found(cells: CellText[], own: number, target: Partial<Target> = {}): unknown {
  const place = findLine(cells, own, { ...TARGET, ...target });
  return place && [place.cell, place.line, ...(place.doubt ? [place.doubt] : [])];
}

test('a line that did not move is found where it was', () => {
  expect(found([cellText('a', ''), cellText('ran', SOURCE)], 1)).toEqual([1, 2]);
});

test('a line that moved within its cell is found by its text', () => {
  expect(found([cellText('ran', `# new\n\n${SOURCE}`)], 0)).toEqual([0, 4]);
});

test('of several equal lines the nearest is the line', () => {
  const text = 'y = f(1)\n\n\ny = f(1)\ny = f(1)';
  expect(found([cellText('ran', text)], 0, { line: 3 })).toEqual([0, 4]);
});

test('a copied cell links to itself, though its output has the id of the original', () => {
  const cells = [cellText('ran', SOURCE), cellText('copy', `# new\n${SOURCE}`)];
  expect(found(cells, 1)).toEqual([1, 3]);
  expect(found(cells, 0)).toEqual([0, 2]);
});

test('a link leads to the cell that ran if the line is not in the cell of the output', () => {
  expect(found([cellText('shows', 'view(r)'), cellText('ran', SOURCE)], 0)).toEqual([1, 2]);
});

test('a site in another cell is not looked for in the cell of the output', () => {
  const cells = [cellText('ran', SOURCE), cellText('own', SOURCE)];
  expect(found(cells, 1, { elsewhere: true })).toEqual([0, 2]);
});

test('after a split the line is found in the cells around, and the user hears so', () => {
  const moved = 'Line 2 is no longer in its cell. This cell contains the same line.';
  const upper = [cellText('far', SOURCE), cellText('new', SOURCE), cellText('ran', 'z = f(2)')];
  expect(found(upper, 2)).toEqual([1, 2, moved]);
  const lower = [cellText('ran', 'import x'), cellText('new', 'y = f(1)')];
  expect(found(lower, 0)).toEqual([1, 1, moved]);
});

test('a line whose text is gone leads to the nearest line of its cell, and the user hears so', () => {
  const doubt = 'Line 2 was changed or deleted after this run. It was: y = f(1)';
  expect(found([cellText('ran', 'import x\ny = f(3)\nz')], 0)).toEqual([0, 2, doubt]);
  expect(found([cellText('a', ''), cellText('ran', 'import x')], 1)).toEqual([1, 1, doubt]);
});

test('edits that were followed decide between equal lines', () => {
  expect(found([cellText('ran', 'y = f(1)\ny = f(1)\ny = f(1)', 3)], 0)).toEqual([0, 3]);
});

test('a followed line with another text was edited, and the user hears so', () => {
  const cells = [cellText('ran', 'import x\ny = f(3)\ny = f(1)', 2)];
  expect(found(cells, 0)).toEqual([0, 2, 'Line 2 was edited after this run.']);
});

test('a line of unknown text is found by its number, within the cell', () => {
  expect(found([cellText('ran', SOURCE)], -1, { source: '' })).toEqual([0, 2]);
  expect(found([cellText('ran', SOURCE, 3)], -1, { source: '' })).toEqual([0, 3]);
  const doubt = 'Line 9 was changed or deleted after this run.';
  expect(found([cellText('ran', SOURCE)], -1, { source: '', line: 9 })).toEqual([0, 3, doubt]);
});

test('a deleted cell has no line', () => {
  expect(found([cellText('other', 'x')], -1)).toBeNull();
  expect(found([cellText('shows', 'x')], 0, { elsewhere: true })).toBeNull();
  expect(found([], -1)).toBeNull();
});

test('a line that a recording cuts is found by its beginning', () => {
  const long = `y = f(${'1, '.repeat(500)})`;
  const source = `${long.slice(0, 999)}…`;
  expect(found([cellText('ran', `import x\n\n${long}`)], 0, { source })).toEqual([0, 3]);
});
