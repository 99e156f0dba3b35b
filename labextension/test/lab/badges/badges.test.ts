import { EditorState } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { badges, currentEnd, type Source } from '../../../src/lab/badges/badges.js';
import { crc32 } from '../../../src/lab/badges/crc32.js';
import { notesOf, type CellNotes } from '../../../src/lab/badges/notes.js';
import { SITE, snapshot } from '../made.js';

const SOURCE = 'import x\ny = f(1)\nz = f(2)';

let notes: CellNotes | null;
let shown: boolean;
let view: EditorView;
const listeners = new Set<() => void>();
const open = vi.fn();

const source: Source = {
  notes: () => notes,
  shown: () => shown,
  on: listener => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  open
};

function notesWith(calls = 5, text = SOURCE): CellNotes {
  const site = { ...SITE, line: 2, source: 'y = f(1)', calls };
  return notesOf(snapshot({ sites: [site], cells: { two: crc32(text) } }), 'two')!;
}

async function updated(): Promise<void> {
  [...listeners].forEach(listener => listener());
  await Promise.resolve();
}

/** The badges with their lines' text. */
function seen(): string[] {
  return [...view.contentDOM.querySelectorAll('.jaxcb-badge')].map(badge => {
    const faded = badge.classList.contains('jaxcb-badge-edited') ? 'faded ' : '';
    return `${badge.closest('.cm-line')!.firstChild!.textContent} | ${faded}${badge.textContent}`;
  });
}

beforeEach(() => {
  notes = notesWith();
  shown = true;
  open.mockClear();
  const state = EditorState.create({ doc: SOURCE, extensions: [badges(source)] });
  view = new EditorView({ state, parent: document.body });
});

afterEach(() => {
  view.destroy();
  expect(listeners.size).toBe(0);
});

const BADGE = 'y = f(1) | ● 5 calls · () → (5,) · 41 µs';

test('an editor that is made late begins with its badges', () => {
  expect(seen()).toEqual([BADGE]);
});

test('a count that grows keeps the elements', async () => {
  const button = view.dom.querySelector('.jaxcb-badge button');
  notes = notesWith(6);
  await updated();
  expect(seen()).toEqual([BADGE.replace('5 calls', '6 calls')]);
  expect(view.dom.querySelector('.jaxcb-badge button')).toBe(button);
});

test('equal news change nothing in the editor', async () => {
  const dispatch = vi.spyOn(view, 'dispatch');
  notes = notesWith();
  await updated();
  expect(dispatch).not.toHaveBeenCalled();
});

test('edits take badges along, faded; undo brings them back', () => {
  view.dispatch({ changes: { from: 0, insert: '# new\n' } });
  expect(seen()).toEqual([BADGE.replace('●', 'faded ●')]);
  view.dispatch({ changes: { from: 0, to: 6 } });
  expect(seen()).toEqual([BADGE]);
});

test('news that come after an edit stand where the edit took the line', async () => {
  view.dispatch({ changes: { from: 18, insert: 'g(2) + ' } });
  view.dispatch({ changes: { from: 13, insert: '9' } });
  notes = notesWith(6);
  await updated();
  expect(seen()[0]).toMatch(/^y = 9f\(1\) \| faded ● 6 calls/);
});

test('a cell that ran again after an edit has fresh badges', async () => {
  view.dispatch({ changes: { from: 0, to: 8, insert: 'import y' } });
  notes = notesWith(5, 'import y\ny = f(1)\nz = f(2)');
  await updated();
  expect(seen()).toEqual([BADGE]);
});

test('a cell that was edited before its editor came finds the line by its text', async () => {
  notes = notesWith(5, 'y = f(1)');
  await updated();
  expect(seen()).toEqual([BADGE.replace('●', 'faded ●')]);
});

test('a restarted kernel leaves no badges', async () => {
  notes = null;
  await updated();
  expect(seen()).toEqual([]);
});

test('badges that are switched off are gone, and come back', async () => {
  shown = false;
  await updated();
  expect(seen()).toEqual([]);
  shown = true;
  await updated();
  expect(seen()).toEqual([BADGE]);
});

test('changes during an editor update are shown after it', async () => {
  let threw = false;
  const listener = EditorView.updateListener.of(update => {
    if (update.docChanged) {
      try {
        listeners.forEach(listener => listener());
      } catch {
        threw = true;
      }
    }
  });
  view.destroy();
  const extensions = [badges(source), listener];
  view = new EditorView({ state: EditorState.create({ doc: SOURCE, extensions }) });
  notes = notesWith(6);
  view.dispatch({ changes: { from: 0, insert: ' ' } });
  await Promise.resolve();
  expect(threw).toBe(false);
  expect(seen()[0]).toMatch(/6 calls/);
});

test('news for an editor that is gone by then are dropped', async () => {
  const dispatch = vi.spyOn(view, 'dispatch');
  notes = notesWith(6);
  const news = updated();
  view.destroy();
  await news;
  expect(dispatch).not.toHaveBeenCalled();
});

test('the text of the editor is that of the code alone', () => {
  expect(view.state.doc.toString()).toBe(SOURCE);
  expect(view.state.sliceDoc(9, 17)).toBe('y = f(1)');
});

test('a click opens the panel at the site', () => {
  view.dom.querySelector<HTMLElement>('.jaxcb-badge button')!.click();
  expect(open).toHaveBeenCalledWith({ site: 0 });
});

test('the end of a line that ran is known after edits, for who goes there', () => {
  view.dispatch({ changes: { from: 0, insert: '# new\n' } });
  const end = currentEnd(view.state, 3, '')!;
  expect(view.state.doc.lineAt(end).text).toBe('z = f(2)');
});

test('an editor without badges knows the line by its number', () => {
  expect(currentEnd(EditorState.create({ doc: SOURCE }), 1, '')).toBe(8);
});
