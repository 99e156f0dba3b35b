/** What the panel needs of the notebook's cells: their labels, and the traces in their outputs. */

import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Snapshot } from '../kernel/snapshot.js';
import { savedSnapshot, savedTraces } from './saved.js';

export interface Cells {
  name(): string; // of the notebook's file
  /** `[45]`, by the id of a cell: the number of its last run, as at its left edge. */
  labels(): ReadonlyMap<string, string>;
  saved(): Snapshot;
}

export const NO_CELLS: Cells = { name: () => '', labels: () => new Map(), saved: () => savedSnapshot([]) };

/** The cells of a notebook; none until it has loaded. */
export function cellsOf(panel: Pick<NotebookPanel, 'model' | 'title'>): Cells {
  return {
    name: () => panel.title.label,
    labels: () => new Map([...(panel.model?.cells ?? [])].map(cell => [cell.id, label(cell)])),
    saved: () => savedSnapshot(panel.model ? savedTraces(panel.model) : [])
  };
}

function label(cell: object): string {
  return `[${(cell as ICodeCellModel).executionCount ?? ' '}]`;
}
