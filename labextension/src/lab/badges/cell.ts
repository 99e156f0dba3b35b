/** Connects the badges of one cell to the state of its notebook. */

import type { CodeEditor } from '@jupyterlab/codeeditor';
import type { ISharedNotebook } from '@jupyter/ydoc';
import type { Source } from './badges.js';
import { notesOf, type Place } from './notes.js';
import type { Hub } from '../kernel/service.js';
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
  open: (notebook: object, place: Place) => void
): Source | null {
  const cell = codeCell(shared);
  const notebook = cell?.notebook;
  if (!cell || !notebook) {
    return null;
  }
  const state = hub.state(notebook);
  return {
    notes: () => state.received.snapshot && notesOf(state.received.snapshot, cell.getId()),
    shown: () => shown.on,
    on: listener => {
      const offs = [state.on(listener), shown.listen(listener)];
      return () => offs.forEach(off => off());
    },
    open: place => open(notebook, place)
  };
}

// Editors of files and of notebook cells have the same interface.
function codeCell(shared: SharedText): SharedCell | null {
  const cell = shared as Partial<SharedCell>;
  return cell.cell_type === 'code' && cell.getId && cell.notebook ? (cell as SharedCell) : null;
}
