import type { NotebookPanel } from '@jupyterlab/notebook';
import { EditorState } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { cellAround, flashes, reveal } from '../../../src/lab/badges/reveal.js';

let view: EditorView;
let content: ReturnType<typeof notebook>;

function cell(id: string, editor: unknown, ready: Promise<void> = Promise.resolve()) {
  const node = document.createElement('div');
  return { model: { sharedModel: { getId: () => id } }, node, editor, ready };
}

function notebook() {
  const widgets = [cell('one', null), cell('two', { editor: view })];
  const scrollToItem = vi.fn(async () => undefined);
  return { widgets, activeCellIndex: 0, mode: 'command', scrollToItem };
}

function panel(): NotebookPanel {
  return { content } as unknown as NotebookPanel;
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  const state = EditorState.create({ doc: 'import x\n  y = 1', extensions: flashes });
  view = new EditorView({ state, parent: document.body });
  content = notebook();
});

afterEach(() => {
  vi.useRealTimers();
  view.destroy();
});

test('reveal scrolls to the cell and selects the line for editing', async () => {
  expect(await reveal(panel(), { cell: 'two', line: 2, source: '' })).toBe(true);
  expect(content.scrollToItem).toHaveBeenCalledWith(1, 'smart');
  expect([content.activeCellIndex, content.mode]).toEqual([1, 'edit']);
  expect(view.state.sliceDoc(view.state.selection.main.from, view.state.selection.main.to)).toBe(
    '  y = 1'
  );
  expect(view.hasFocus).toBe(true);
});

test('reveal flashes the line for a moment', async () => {
  await reveal(panel(), { cell: 'two', line: 2, source: '' });
  expect(view.dom.querySelector('.jaxcb-flash')!.textContent).toBe('  y = 1');
  vi.runAllTimers();
  expect(view.dom.querySelector('.jaxcb-flash')).toBeNull();
});

test('reveal prefers the text of a line to its number, and stays within the cell', async () => {
  await reveal(panel(), { cell: 'two', line: 1, source: 'y = 1' });
  expect(view.state.selection.main.from).toBe(9);
  await reveal(panel(), { cell: 'two', line: 1, source: 'gone' });
  expect(view.state.selection.main.from).toBe(0);
  await reveal(panel(), { cell: 'two', line: 99, source: '' });
  expect(view.state.selection.main.from).toBe(9);
});

test('reveal waits for an editor that is created when its cell becomes visible', async () => {
  const late = content.widgets[1]!;
  late.editor = null;
  late.ready = Promise.resolve().then(() => {
    late.editor = { editor: view };
  });
  await reveal(panel(), { cell: 'two', line: 2, source: '' });
  expect(view.state.selection.main.from).toBe(9);
});

test('reveal changes nothing if the cell does not exist', async () => {
  expect(await reveal(panel(), { cell: 'three', line: 1, source: '' })).toBe(false);
  expect(content.mode).toBe('command');
  expect(await reveal(panel(), { cell: 'one', line: 1, source: '' })).toBe(true);
});

test('cellAround finds the cell that contains an output', () => {
  const output = document.createElement('div');
  content.widgets[1]!.node.append(output);
  expect(cellAround(panel(), output)).toBe('two');
  expect(cellAround(panel(), document.body)).toBeNull();
});
