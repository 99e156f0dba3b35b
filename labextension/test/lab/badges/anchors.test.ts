import { ChangeSet, Text, type ChangeSpec } from '@codemirror/state';
import { expect, test } from 'vitest';
import { edited, lineEnd, originAt, type Origin } from '../../../src/lab/badges/anchors.js';
import { crc32 } from '../../../src/lab/badges/crc32.js';

const RAN = Text.of(['import x', 'y = f(1)', '', 'z = f(2)']);

function origin(): Origin {
  return originAt(RAN, crc32(RAN.toString()))!;
}

/** The text, after these changes, of the line that was `line` when the cell ran; null: gone. */
function textAfter(line: number, source: string, ...specs: ChangeSpec[]): string | null {
  let [doc, from] = [RAN, origin()];
  for (const spec of specs) {
    const changes = ChangeSet.of(spec, doc.length);
    doc = changes.apply(doc);
    from = edited(from, changes);
  }
  const end = lineEnd(from, doc, line, source);
  return end === null ? null : doc.lineAt(end).text;
}

test('accepts only the exact executed source as the origin', () => {
  expect(originAt(RAN, 1)).toBeNull();
  expect(originAt(RAN, null)).toBeNull();
  expect(lineEnd(origin(), RAN, 2, '')).toBe(RAN.line(2).to);
});

test('finds a line after lines were inserted above it and text was typed into it', () => {
  const above = { from: 0, insert: '# new\n# lines\n' };
  expect(textAfter(2, '', above, { from: 24, insert: 'yy' })).toBe('yyy = f(1)');
});

test('stays at the end of the original line when text and a new line are typed after it', () => {
  expect(textAfter(2, '', { from: RAN.line(2).to, insert: '  # why\nw = 1' })).toBe('y = f(1)  # why');
});

test('finds no line that was deleted, with or without its line break', () => {
  const { from, to } = RAN.line(2);
  expect(textAfter(2, '', { from, to: to + 1 })).toBeNull();
  expect(textAfter(2, '', { from: from - 1, to })).toBeNull();
  expect(textAfter(2, '', { from, to })).toBeNull();
});

test('finds the nearest line with the same text after a formatter replaced the whole source', () => {
  const all = { from: 0, to: RAN.length, insert: '# y\ny = f(1)\n\n    y = f(1)' };
  expect(textAfter(2, 'y = f(1)', all)).toBe('y = f(1)');
  expect(textAfter(4, 'y = f(1)', all)).toBe('    y = f(1)');
  expect(textAfter(4, 'z = f(2)', all)).toBeNull();
});

test('finds a line by its number if both the origin and its text are unknown', () => {
  expect(lineEnd(null, RAN, 1, '')).toBe(8);
  expect(lineEnd(null, RAN, 5, '')).toBeNull();
  expect(lineEnd(null, RAN, 0, '')).toBeNull();
});

test('finds no line outside the executed source', () => {
  expect(lineEnd(origin(), RAN, 9, '')).toBeNull();
  expect(lineEnd(origin(), RAN, 0, '')).toBeNull();
});
