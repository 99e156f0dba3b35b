import { EditorState, Text } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { badges, trackedLine, type Source } from '../../../src/lab/badges/badges.js';
import { crc32 } from '../../../src/lab/badges/crc32.js';
import { notesOf, type CellNotes } from '../../../src/lab/badges/notes.js';
import { SITE, snapshot } from '../snapshots.js';

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
  const site = { ...SITE, cell_line: 2, source: 'y = f(1)', calls };
  return notesOf(snapshot({ sites: [site], cells: { two: crc32(text) } }), 'two')!;
}

async function notifyListeners(): Promise<void> {
  [...listeners].forEach(listener => listener());
  await Promise.resolve();
}

/** The text of each badge, after the text of its line. */
function badgeTexts(): string[] {
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

const BADGE = 'y = f(1) | ● 5 calls · 41 µs · () → (5,)';

test('an editor created after the run starts with its badges', () => {
  expect(badgeTexts()).toEqual([BADGE]);
});

test('a new count updates the badge without replacing its elements', async () => {
  const button = view.dom.querySelector('.jaxcb-badge button');
  notes = notesWith(6);
  await notifyListeners();
  expect(badgeTexts()).toEqual([BADGE.replace('5 calls', '6 calls')]);
  expect(view.dom.querySelector('.jaxcb-badge button')).toBe(button);
});

test('an update with equal notes does not touch the editor', async () => {
  const dispatch = vi.spyOn(view, 'dispatch');
  notes = notesWith();
  await notifyListeners();
  expect(dispatch).not.toHaveBeenCalled();
});

test('badges move with edits and are dimmed; undoing the edit restores them', () => {
  view.dispatch({ changes: { from: 0, insert: '# new\n' } });
  expect(badgeTexts()).toEqual([BADGE.replace('●', 'faded ●')]);
  view.dispatch({ changes: { from: 0, to: 6 } });
  expect(badgeTexts()).toEqual([BADGE]);
});

test('an update after an edit appears at the new position of its line', async () => {
  view.dispatch({ changes: { from: 18, insert: 'g(2) + ' } });
  view.dispatch({ changes: { from: 13, insert: '9' } });
  notes = notesWith(6);
  await notifyListeners();
  expect(badgeTexts()[0]).toMatch(/^y = 9f\(1\) \| faded ● 6 calls/);
});

test('badges are no longer dimmed when the cell runs again after an edit', async () => {
  view.dispatch({ changes: { from: 0, to: 8, insert: 'import y' } });
  notes = notesWith(5, 'import y\ny = f(1)\nz = f(2)');
  await notifyListeners();
  expect(badgeTexts()).toEqual([BADGE]);
});

test('finds the line by its text if the cell was edited before its editor existed', async () => {
  notes = notesWith(5, 'y = f(1)');
  await notifyListeners();
  expect(badgeTexts()).toEqual([BADGE.replace('●', 'faded ●')]);
});

test('restarting the kernel removes the badges', async () => {
  notes = null;
  await notifyListeners();
  expect(badgeTexts()).toEqual([]);
});

test('switching badges off removes them, switching them on restores them', async () => {
  shown = false;
  await notifyListeners();
  expect(badgeTexts()).toEqual([]);
  shown = true;
  await notifyListeners();
  expect(badgeTexts()).toEqual([BADGE]);
});

test('changes during an editor update are shown after the update', async () => {
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
  expect(badgeTexts()[0]).toMatch(/6 calls/);
});

test('an update is dropped if its editor has been destroyed', async () => {
  const dispatch = vi.spyOn(view, 'dispatch');
  notes = notesWith(6);
  const update = notifyListeners();
  view.destroy();
  await update;
  expect(dispatch).not.toHaveBeenCalled();
});

test('badges do not change the text of the editor', () => {
  expect(view.state.doc.toString()).toBe(SOURCE);
  expect(view.state.sliceDoc(9, 17)).toBe('y = f(1)');
});

test('a click on a badge opens its site', () => {
  view.dom.querySelector<HTMLElement>('.jaxcb-badge button')!.click();
  expect(open).toHaveBeenCalledWith({ site: 0 }, false);
});

test('a key reads the lines of an edited cell once, not once for each badge', () => {
  const sources = Array.from({ length: 100 }, (_, n) => `y${n} = f(${n})`);
  const sites = sources.map((each, n) => ({ ...SITE, cell_line: n + 1, source: each }));
  notes = notesOf(snapshot({ sites, cells: { two: 1 } }), 'two')!;
  const doc = ['# new', ...sources].join('\n');
  const state = EditorState.create({ doc, extensions: [badges(source)] });
  const iterated = vi.spyOn(Text.prototype, 'iterLines');
  const transaction = state.update({ changes: { from: 5, insert: '!' } });
  const line = vi.spyOn(transaction.newDoc, 'line');
  expect(trackedLine(transaction.state, 1, '')).toBeNull(); // applies the transaction
  expect(iterated).toHaveBeenCalledOnce();
  expect(line.mock.calls.length).toBe(sites.length);
  vi.restoreAllMocks();
});

test('trackedLine follows an executed line through edits of the line and around it', () => {
  view.dispatch({ changes: { from: 0, insert: '# new\n' } });
  expect(trackedLine(view.state, 3, 'z = f(2)')).toBe(4);
  view.dispatch({ changes: { from: view.state.doc.length, insert: ' + 1' } });
  expect(trackedLine(view.state, 3, 'z = f(2)')).toBe(4);
});

test('trackedLine knows nothing of other sources, deleted lines and editors without badges', () => {
  expect(trackedLine(view.state, 3, 'z = f(3)')).toBeNull();
  expect(trackedLine(view.state, 9, '')).toBeNull();
  view.dispatch({ changes: { from: 0, to: view.state.doc.length } });
  expect(trackedLine(view.state, 3, 'z = f(2)')).toBeNull();
  expect(trackedLine(EditorState.create({ doc: SOURCE }), 3, 'z = f(2)')).toBeNull();
});
