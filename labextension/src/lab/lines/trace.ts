/** Goes from a call site to its row in the host trace of a cell. */

import type { NotebookPanel } from '@jupyterlab/notebook';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { Site } from '../../view/data/schema.js';
import { views } from '../around.js';
import { inCell, keyOf, savedTraces } from '../panel/saved.js';

/**
 * Opens a host trace at a site, and focuses its row; false if no output of the notebook has it.
 *
 * Of several host traces, it is that of the site's own cell, else the one that ran last.
 */
export async function showInTrace({ content }: NotebookPanel, site: Site): Promise<boolean> {
  const traces = content.model ? savedTraces(content.model) : [];
  const having = traces.filter(trace =>
    trace.facts.sites.some(each => keyOf(inCell(each, trace)) === keyOf(site))
  );
  const numbers = new Map([...content.widgets].map(({ model }) => [model.id, numberOf(model)]));
  const [newest] = having.sort((one, other) => numbers.get(other.id)! - numbers.get(one.id)!);
  const trace = having.find(({ id }) => id === site.cell_id) ?? newest;
  const index = content.widgets.findIndex(({ model }) => model.id === trace?.id);
  const cell = content.widgets[index];
  if (!trace || !cell) {
    return false;
  }
  if (!cell.node.isConnected || !viewsIn(cell.node).length) {
    await content.scrollToItem(index, 'smart');
    await cell.ready; // the notebook creates outputs only when their cell is visible
  }
  const shown = viewsIn(cell.node).some(view =>
    view.showSite(each => keyOf(inCell(each, trace)) === keyOf(site))
  );
  return shown;
}

function viewsIn(cell: Element) {
  const nodes = [...cell.querySelectorAll('.jaxcb-view')];
  return nodes.flatMap(node => views.get(node) ?? []);
}

function numberOf(model: object): number {
  return (model as ICodeCellModel).executionCount ?? 0;
}
