/** Jumps to a line of a notebook cell. */

import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { StateEffect, StateField, type Extension } from '@codemirror/state';
import { Decoration, EditorView, type DecorationSet } from '@codemirror/view';
import type { Target } from '../../view/sites/row.js';
import { trackedLine } from '../badges/badges.js';
import { findLine, type CellText } from './find.js';

const FLASH_MS = 1600;
const GONE = 'The cell of this line is no longer in the notebook.';

/**
 * Scrolls to the line of `target`, selects it and flashes it.
 *
 * `own` is the index of the cell whose output links to the line; -1: none. Returns what the user
 * should know if the line is not exactly the one that ran, otherwise an empty text.
 */
export async function reveal(panel: NotebookPanel, own: number, target: Target): Promise<string> {
  const { content } = panel;
  const found = findLine(content.widgets.map(textOf), own, target);
  if (found === null) {
    return GONE;
  }
  const cell = content.widgets[found.cell]!;
  content.activeCellIndex = found.cell;
  cell.inputHidden = false;
  await content.scrollToItem(found.cell, 'smart');
  await cell.ready; // the notebook creates an editor only when its cell is visible
  content.mode = 'edit';
  const view = editorOf(cell);
  if (view) {
    select(view, found.line);
  }
  return found.doubt;
}

function textOf(cell: Cell): CellText {
  const { sharedModel } = cell.model;
  return {
    id: sharedModel.getId(),
    text: sharedModel.getSource(),
    tracked: (line, source) => {
      const view = editorOf(cell);
      return view && trackedLine(view.state, line, source);
    }
  };
}

// JupyterLab's editor interface does not declare the CodeMirror view.
export function editorOf(cell: Cell): EditorView | null {
  const below = (cell.editor as { editor?: unknown } | null)?.editor;
  return (below as EditorView | undefined) ?? null;
}

function select(view: EditorView, line: number): void {
  const { from, to } = view.state.doc.line(line);
  view.dispatch({
    selection: { anchor: from, head: to },
    effects: [EditorView.scrollIntoView(from, { y: 'nearest' }), flash.of(from)]
  });
  view.focus();
  setTimeout(() => view.dom.isConnected && view.dispatch({ effects: flash.of(null) }), FLASH_MS);
}

const flash = StateEffect.define<number | null>();
const flashing = Decoration.line({ class: 'jaxcb-flash' });

/** Highlights the revealed line for a moment. */
export const flashes: Extension = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (value, { changes, effects }) => {
    const effect = effects.find(each => each.is(flash));
    if (!effect) {
      return value.map(changes);
    }
    const line: number | null = effect.value;
    return line === null ? Decoration.none : Decoration.set(flashing.range(line));
  },
  provide: own => EditorView.decorations.from(own)
});
