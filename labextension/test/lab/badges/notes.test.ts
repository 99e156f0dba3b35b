import { expect, test } from 'vitest';
import { notesOf } from '../../../src/lab/badges/notes.js';
import type { Variant } from '../../../src/view/data/schema.js';
import { aVariant, BATCHED } from '../../view/recordings.js';
import { CALLBACK, SITE, snapshot, VALUE } from '../snapshots.js';

test('a cell that is not in the snapshot has no notes', () => {
  expect(notesOf(snapshot(), 'three')).toBeNull();
});

test('a site has a note on its line, with the source text that identifies the line', () => {
  const notes = notesOf(snapshot(), 'two');
  expect(notes).toMatchObject({ crc: 0x0b0e9cb0, lines: [{ line: 3, source: SITE.source }] });
  expect(notes!.lines[0]!.notes[0]).toMatchObject({
    sign: '●',
    text: '5 calls · 41 µs · () → (5,)',
    title: 'bessel · line 3',
    place: { site: 0 }
  });
});

test('a callback has a note on the line that registers it', () => {
  expect(notesOf(snapshot(), 'one')!.lines).toMatchObject([
    { line: 2, notes: [{ text: 'pure callback · 5 calls · 1 site', place: { callback: 0 } }] }
  ]);
});

test('sites on one line share a badge, which names their functions if they differ', () => {
  const texts = (other: string): string[] => {
    const sites = [SITE, { ...SITE, function: other, calls: 1 }];
    const { lines } = notesOf(snapshot({ sites }), 'two')!;
    expect(lines.length).toBe(1);
    return lines[0]!.notes.map(note => note.text.slice(0, 7));
  };
  expect(texts('bessel')).toEqual(['5 calls', '1 call ']);
  expect(texts('airy')).toEqual(['bessel:', 'airy: 1']);
});

test('a long name on such a line leaves room for what happened', () => {
  const sites = [SITE, { ...SITE, function: 'a_name_that_is_longer_than_its_badge' }];
  const { lines } = notesOf(snapshot({ sites }), 'two')!;
  const [, { text, title }] = lines[0]!.notes as [unknown, { text: string; title: string }];
  expect(text).toBe('a_name_that_…s_badge: 5 calls · 41 µs · () → (5,)');
  expect(title).toContain('a_name_that_is_longer_than_its_badge');
});

test('a watched value is on its line, beside the sites, in the tone of an error if it is bad', () => {
  const values = [VALUE, { ...VALUE, line: 5, source: 'z', text: 'first NaN here: step 2', bad: true, first: true }];
  const { lines } = notesOf(snapshot({ values }), 'two')!;
  expect(lines.map(({ line, source }) => [line, source])).toEqual([
    [3, SITE.source],
    [5, 'z']
  ]);
  expect(lines[0]!.notes.map(note => note.text)).toEqual([
    '5 calls · 41 µs · () → (5,)',
    'y mean 0.31 → 0.02'
  ]);
  expect(lines[1]!.notes).toEqual([
    {
      tone: 'error',
      sign: '',
      text: 'first NaN here: step 2',
      filled: true,
      name: 'y',
      title: 'y',
      details: VALUE.details,
      vmap: null,
      place: null
    }
  ]);
});

test('a cell whose source is unknown has no checksum', () => {
  expect(notesOf(snapshot({ cells: {} }), 'two')!.crc).toBeNull();
});

test('the sign and tone of a callback show that it failed', () => {
  const note = (errors: number) =>
    notesOf(snapshot({ callbacks: [{ ...CALLBACK, errors }] }), 'one')!.lines[0]!.notes[0]!;
  expect(note(0)).toMatchObject({ tone: 'quiet', sign: '' });
  expect(note(1)).toMatchObject({ tone: 'error', sign: '✕' });
});

test('the details of a callback include its options', () => {
  const callbacks = [{ ...CALLBACK, elided: 2 }];
  expect(notesOf(snapshot({ callbacks }), 'one')!.lines[0]!.notes[0]!.details).toEqual([
    'pure callback · 5 calls · 1 site · 2 elided',
    'vmap_method=expand_dims'
  ]);
});

test('a site under vmap has the shapes that its tooltip draws', () => {
  const drawn = (...shapes: Variant[]): Variant | null =>
    notesOf(snapshot({ sites: [{ ...SITE, shapes }] }), 'two')!.lines[0]!.notes[0]!.vmap;
  expect(drawn(BATCHED)).toEqual(BATCHED);
  expect([drawn(), drawn(BATCHED, BATCHED), drawn(aVariant())]).toEqual([null, null, null]);
  const { diagram } = BATCHED;
  const rows = Array(9).fill(diagram!.rows[0]);
  expect(drawn({ ...BATCHED, diagram: { ...diagram!, rows } })).toBeNull();
});
