/** What the badges of one cell hear. */

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

/** Null for what is no code cell of a notebook: a file, a console, Markdown. */
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
    notes: () => state.told.snapshot && notesOf(state.told.snapshot, cell.getId()),
    shown: () => shown.on,
    on: listener => {
      const offs = [state.on(listener), shown.listen(listener)];
      return () => offs.forEach(off => off());
    },
    open: place => open(notebook, place)
  };
}

// Editors of files and of notebook cells come with the same interface.
function codeCell(shared: SharedText): SharedCell | null {
  const cell = shared as Partial<SharedCell>;
  return cell.cell_type === 'code' && cell.getId && cell.notebook ? (cell as SharedCell) : null;
}
