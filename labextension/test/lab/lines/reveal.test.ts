import type { NotebookPanel } from '@jupyterlab/notebook';
import { EditorState } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { flashes, reveal } from '../../../src/lab/lines/reveal.js';
import type { Target } from '../../../src/view/sites/row.js';

const SOURCE = 'import x\n  y = 1';

let view: EditorView;
let content: ReturnType<typeof notebook>;

function cell(id: string, text: string, editor: unknown) {
  const sharedModel = { getId: () => id, getSource: () => text };
  return { model: { sharedModel }, editor, ready: Promise.resolve(), inputHidden: true };
}

function notebook() {
  const widgets = [cell('one', 'x', null), cell('two', SOURCE, { editor: view })];
  const scrollToItem = vi.fn(async () => undefined);
  return { widgets, activeCellIndex: 0, mode: 'command', scrollToItem };
}

function panel(): NotebookPanel {
  return { content } as unknown as NotebookPanel;
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  const state = EditorState.create({ doc: SOURCE, extensions: flashes });
  view = new EditorView({ state, parent: document.body });
  content = notebook();
});

afterEach(() => {
  vi.useRealTimers();
  view.destroy();
});

function jump(target: Partial<Target>, own = 1): Promise<string> {
  return reveal(panel(), own, { cell: 'two', line: 2, source: '', elsewhere: false, ...target });
}

test('reveal scrolls to the cell and selects the line for editing', async () => {
  expect(await jump({})).toBe('');
  expect(content.scrollToItem).toHaveBeenCalledWith(1, 'smart');
  expect([content.activeCellIndex, content.mode]).toEqual([1, 'edit']);
  expect(view.state.sliceDoc(view.state.selection.main.from, view.state.selection.main.to)).toBe(
    '  y = 1'
  );
  expect(view.hasFocus).toBe(true);
  expect(content.widgets.map(each => each.inputHidden)).toEqual([true, false]);
});

test('reveal flashes the line for a moment', async () => {
  await jump({});
  expect(view.dom.querySelector('.jaxcb-flash')!.textContent).toBe('  y = 1');
  vi.runAllTimers();
  expect(view.dom.querySelector('.jaxcb-flash')).toBeNull();
});

test('reveal prefers the text of a line to its number', async () => {
  expect(await jump({ line: 1, source: 'y = 1' })).toBe('');
  expect(view.state.selection.main.from).toBe(9);
});

test('reveal returns what the user should know about a line that is gone', async () => {
  expect(await jump({ line: 1, source: 'gone' })).toContain('It was: gone');
  expect(view.state.selection.main.from).toBe(0);
});

test('reveal waits for an editor that is created when its cell becomes visible', async () => {
  const late = content.widgets[1]!;
  late.editor = null;
  late.ready = Promise.resolve().then(() => {
    late.editor = { editor: view };
  });
  await jump({});
  expect(view.state.selection.main.from).toBe(9);
});

test('reveal changes nothing if the cell does not exist', async () => {
  expect(await jump({ cell: 'three', source: 'gone' }, -1)).toContain('no longer in the notebook');
  expect([content.activeCellIndex, content.mode]).toEqual([0, 'command']);
});

test('reveal works in a cell without an editor', async () => {
  expect(await jump({ cell: 'one', line: 1, source: 'x' }, -1)).toBe('');
  expect(content.activeCellIndex).toBe(0);
});
