/** Jumps to a line of a notebook cell. */

import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { StateEffect, StateField, type Extension } from '@codemirror/state';
import { Decoration, EditorView, type DecorationSet } from '@codemirror/view';
import { currentEnd } from './badges.js';

const FLASH_MS = 1600;

/** A line in the executed source of a cell. */
export interface Spot {
  readonly cell: string;
  readonly line: number; // 1-based
  readonly source: string; // the line, stripped; empty: unknown
}

/** Scrolls to the line, selects it and flashes it; false if the notebook has no such cell. */
export async function reveal(panel: NotebookPanel, spot: Spot): Promise<boolean> {
  const { content } = panel;
  const place = content.widgets.findIndex(cell => cell.model.sharedModel.getId() === spot.cell);
  const cell = content.widgets[place];
  if (!cell) {
    return false;
  }
  content.activeCellIndex = place;
  await content.scrollToItem(place, 'smart');
  await cell.ready; // the notebook creates an editor only when its cell is visible
  content.mode = 'edit';
  const view = editorOf(cell);
  if (view) {
    select(view, spot);
  }
  return true;
}

/** The id of the cell that contains `node`; null if no cell of this notebook does. */
export function cellAround(panel: NotebookPanel, node: Node): string | null {
  const cell = panel.content.widgets.find(each => each.node.contains(node));
  return cell?.model.sharedModel.getId() ?? null;
}

// JupyterLab's editor interface does not declare the CodeMirror view.
function editorOf(cell: Cell): EditorView | null {
  const below = (cell.editor as { editor?: unknown } | null)?.editor;
  return (below as EditorView | undefined) ?? null;
}

function select(view: EditorView, { line, source }: Spot): void {
  const { doc } = view.state;
  const end = currentEnd(view.state, line, source) ?? doc.line(clamp(line, doc.lines)).to;
  const { from, to } = doc.lineAt(end);
  view.dispatch({
    selection: { anchor: from, head: to },
    effects: [EditorView.scrollIntoView(from, { y: 'nearest' }), flash.of(from)]
  });
  view.focus();
  setTimeout(() => view.dom.isConnected && view.dispatch({ effects: flash.of(null) }), FLASH_MS);
}

function clamp(line: number, lines: number): number {
  return Math.min(Math.max(line, 1), lines);
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
