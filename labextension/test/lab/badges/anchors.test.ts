import { ChangeSet, Text, type ChangeSpec } from '@codemirror/state';
import { expect, test } from 'vitest';
import { edited, lineEnd, originAt, type Origin } from '../../../src/lab/badges/anchors.js';
import { crc32 } from '../../../src/lab/badges/crc32.js';

const RAN = Text.of(['import x', 'y = f(1)', '', 'z = f(2)']);

function origin(): Origin {
  return originAt(RAN, crc32(RAN.toString()))!;
}

/** The line that reads so after these changes, by the line that ran. */
function after(line: number, source: string, ...specs: ChangeSpec[]): string | null {
  let [doc, from] = [RAN, origin()];
  for (const spec of specs) {
    const changes = ChangeSet.of(spec, doc.length);
    doc = changes.apply(doc);
    from = edited(from, changes);
  }
  const end = lineEnd(from, doc, line, source);
  return end === null ? null : doc.lineAt(end).text;
}

test('only the very source that ran is an origin', () => {
  expect(originAt(RAN, 1)).toBeNull();
  expect(originAt(RAN, null)).toBeNull();
  expect(lineEnd(origin(), RAN, 2, '')).toBe(RAN.line(2).to);
});

test('a line is found again after lines above it and typing in it', () => {
  const above = { from: 0, insert: '# new\n# lines\n' };
  expect(after(2, '', above, { from: 24, insert: 'yy' })).toBe('yyy = f(1)');
});

test('typing at the end of a line leaves the place before it', () => {
  expect(after(2, '', { from: RAN.line(2).to, insert: '  # why\nw = 1' })).toBe('y = f(1)  # why');
});

test('a line that is deleted is gone, from whichever side', () => {
  const { from, to } = RAN.line(2);
  expect(after(2, '', { from, to: to + 1 })).toBeNull();
  expect(after(2, '', { from: from - 1, to })).toBeNull();
  expect(after(2, '', { from, to })).toBeNull();
});

test('where a formatter replaced the whole source, the nearest equal line is taken', () => {
  const all = { from: 0, to: RAN.length, insert: '# y\ny = f(1)\n\n    y = f(1)' };
  expect(after(2, 'y = f(1)', all)).toBe('y = f(1)');
  expect(after(4, 'y = f(1)', all)).toBe('    y = f(1)');
  expect(after(4, 'z = f(2)', all)).toBeNull();
});

test('without an origin a line without source is the one of that number', () => {
  expect(lineEnd(null, RAN, 1, '')).toBe(8);
  expect(lineEnd(null, RAN, 5, '')).toBeNull();
  expect(lineEnd(null, RAN, 0, '')).toBeNull();
});

test('a line that the origin never had is none', () => {
  expect(lineEnd(origin(), RAN, 9, '')).toBeNull();
  expect(lineEnd(origin(), RAN, 0, '')).toBeNull();
});
