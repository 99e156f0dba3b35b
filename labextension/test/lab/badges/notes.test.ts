import { expect, test } from 'vitest';
import { notesOf } from '../../../src/lab/badges/notes.js';
import { CALLBACK, SITE, snapshot } from '../made.js';

test('a cell that is not in the snapshot has no notes', () => {
  expect(notesOf(snapshot(), 'three')).toBeNull();
});

test('a site stands at its line, with the source by which it is found again', () => {
  const notes = notesOf(snapshot(), 'two');
  expect(notes).toMatchObject({ crc: 0x0b0e9cb0, lines: [{ line: 3, source: SITE.source }] });
  expect(notes!.lines[0]!.notes[0]).toMatchObject({
    sign: '●',
    text: '5 calls · () → (5,) · 41 µs',
    title: 'bessel · line 3',
    place: { site: 0 }
  });
});

test('a callback stands at the line that registers it', () => {
  expect(notesOf(snapshot(), 'one')!.lines).toMatchObject([
    { line: 2, notes: [{ text: 'pure callback · 5 calls · 1 site', place: { callback: 0 } }] }
  ]);
});

test('sites of one line are together, and named where their functions differ', () => {
  const texts = (other: string): string[] => {
    const sites = [SITE, { ...SITE, function: other, calls: 1 }];
    const { lines } = notesOf(snapshot({ sites }), 'two')!;
    expect(lines.length).toBe(1);
    return lines[0]!.notes.map(note => note.text.slice(0, 7));
  };
  expect(texts('bessel')).toEqual(['5 calls', '1 call ']);
  expect(texts('airy')).toEqual(['bessel:', 'airy: 1']);
});

test('a cell whose source is not known has no checksum', () => {
  expect(notesOf(snapshot({ cells: {} }), 'two')!.crc).toBeNull();
});

test('a callback that failed says so by sign and tone', () => {
  const note = (errors: number) =>
    notesOf(snapshot({ callbacks: [{ ...CALLBACK, errors }] }), 'one')!.lines[0]!.notes[0]!;
  expect(note(0)).toMatchObject({ tone: 'quiet', sign: '' });
  expect(note(1)).toMatchObject({ tone: 'error', sign: '✕' });
});

test('the details of a callback hold its options', () => {
  const callbacks = [{ ...CALLBACK, elided: 2 }];
  expect(notesOf(snapshot({ callbacks }), 'one')!.lines[0]!.notes[0]!.details).toEqual([
    'pure callback · 5 calls · 1 site · 2 elided',
    'vmap_method=expand_dims'
  ]);
});
