/** Finds the notebook and the cell to which an output belongs. */

import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Output } from '../around.js';

export interface Owner {
  readonly panel: NotebookPanel;
  readonly cell: number; // index
}

/**
 * The cell that shows `output`, or whose output is shown in a view of its own; null: none.
 *
 * "Create New View for Cell Output" shows the model of the cell's output outside of the notebook.
 */
export function ownerOf(panels: readonly NotebookPanel[], output: Output): Owner | null {
  const around = panels.find(panel => panel.node.contains(output.node));
  for (const panel of around ? [around] : panels) {
    const { widgets } = panel.content;
    const cell = around
      ? widgets.findIndex(each => each.node.contains(output.node))
      : widgets.findIndex(each => each.model.type === 'code' && has(each.model, output.model));
    if (cell >= 0) {
      return { panel, cell };
    }
  }
  return null;
}

function has(cell: unknown, model: unknown): boolean {
  const { outputs } = cell as ICodeCellModel;
  return Array.from({ length: outputs.length }, (_, n) => outputs.get(n)).some(
    output => (output as unknown) === model
  );
}
