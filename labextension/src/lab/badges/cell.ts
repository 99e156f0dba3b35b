/** Connects the badges of one cell to the state of its notebook. */

import type { CodeEditor } from '@jupyterlab/codeeditor';
import type { ISharedNotebook } from '@jupyter/ydoc';
import type { Source } from './badges.js';
import { notesOf, type CellNotes, type Place } from './notes.js';
import type { Hub } from '../kernel/service.js';
import type { Snapshot } from '../kernel/snapshot.js';
import type { Switch } from '../switch.js';

type SharedText = CodeEditor.IModel['sharedModel'];

interface SharedCell {
  readonly cell_type: string;
  readonly notebook: ISharedNotebook | null;
  getId(): string;
}

/** The source of a code cell's badges; null for a file, a console or a Markdown cell. */
export function cellSource(
  hub: Hub,
  shared: SharedText,
  shown: Switch,
  open: (notebook: object, snapshot: Snapshot, place: Place, inPanel: boolean) => void
): Source | null {
  const cell = codeCell(shared);
  const notebook = cell?.notebook;
  if (!cell || !notebook) {
    return null;
  }
  const state = hub.state(notebook);
  const id = cell.getId();
  // What the kernel knows of a cell, else what the outputs of the notebook say.
  const known = (): { snapshot: Snapshot; notes: CellNotes } | null => {
    for (const snapshot of [state.received.snapshot, state.saved]) {
      const notes = snapshot && notesOf(snapshot, id);
      if (notes) {
        return { snapshot, notes };
      }
    }
    return null;
  };
  return {
    notes: () => known()?.notes ?? null,
    shown: () => shown.on,
    on: listener => {
      const offs = [state.on(listener), shown.listen(listener)];
      return () => offs.forEach(off => off());
    },
    open: (place, inPanel) => {
      const from = known();
      if (from) {
        open(notebook, from.snapshot, place, inPanel);
      }
    }
  };
}

// Editors of files and of notebook cells have the same interface.
function codeCell(shared: SharedText): SharedCell | null {
  const cell = shared as Partial<SharedCell>;
  return cell.cell_type === 'code' && cell.getId && cell.notebook ? (cell as SharedCell) : null;
}
