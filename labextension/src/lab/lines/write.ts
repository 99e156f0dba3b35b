/** Writes an option that advice proposes into the cell that registers the callback. */

import type { Proposal, Site } from '../../view/data/schema.js';
import type { Magic } from '../../view/view.js';
import type { Snapshot } from '../kernel/snapshot.js';
import type { Owner } from './owner.js';
import { magicEdit, optionEdit } from './write-option.js';

/** Writes the option, shows the line, and returns what to do next; null: no line was found. */
export async function writeProposal(
  { panel }: Owner,
  snapshot: Snapshot | null,
  { function: name, flavor }: Site,
  proposal: Proposal
): Promise<string | null> {
  const found = snapshot?.callbacks.filter(one => one.name === name && one.flavor === flavor) ?? [];
  const [callback, ...others] = found;
  const model = [...(panel.model?.cells ?? [])].find(({ id }) => id === callback?.cell);
  if (!callback || others.length || !model) {
    return null;
  }
  const { sharedModel } = model;
  const edit = optionEdit(sharedModel.getSource(), callback.line, name, proposal);
  if (!edit) {
    return null;
  }
  sharedModel.updateSource(edit.from, edit.to, edit.text); // an edit as by hand, which can be undone
  const { reveal } = await import('./reveal.js');
  await reveal(panel, -1, { cell: model.id, line: callback.line, source: '', elsewhere: true });
  const written = edit.text.startsWith(' --') ? edit.text.trim() : proposal[0]; // of a magic
  const next = `Run it again, then the cells that use ${name}.`;
  return `The cell of ${name} now has ${written}; Ctrl+Z in it removes that. ${next}`;
}

/**
 * Writes a magic into the cell of an output, and makes it the selected cell.
 *
 * Returns whether it did: a cell that awaits stays as it is.
 */
export function writeMagic({ panel: { content }, cell }: Owner, magic: Magic): boolean {
  const { sharedModel } = content.widgets[cell]!.model;
  const edit = magicEdit(sharedModel.getSource(), magic);
  if (!edit) {
    return false;
  }
  sharedModel.updateSource(edit.from, edit.to, edit.text);
  content.deselectAll();
  content.activeCellIndex = cell;
  return true;
}

/** Inserts a cell that checks the callback with batches, below the cell of the output. */
export function insertCheck({ panel, cell }: Owner, { function: name, arguments: given }: Site): void {
  const source = `%jax_check ${name}(${given})`;
  panel.model?.sharedModel.insertCell(cell + 1, { cell_type: 'code', source });
  panel.content.activeCellIndex = cell + 1;
}
