/**
 * The services of JupyterLab that an output in a notebook can use.
 *
 * JupyterLab loads output renderers separately from plugins and gives them no services. A plugin
 * provides them through this module, which both import.
 */

import type { Widget } from '@lumino/widgets';
import type { Proposal, Site } from '../view/data/schema.js';
import type { Target } from '../view/sites/row.js';
import type { Everything, TraceView } from '../view/view.js';

/** An output: its element and JupyterLab's model of it. */
export interface Output {
  readonly node: Node;
  readonly model: object | null;
}

export interface Surroundings {
  reveal(output: Output, target: Target): void;
  /** Shows a widget about an output in a tab of its own. */
  openTab(output: Output, widget: Widget): void;
  /** Writes an option that advice proposes into the code. */
  apply(output: Output, site: Site, proposal: Proposal): Promise<void>;
  /** Runs the cell of an output again with a profile. */
  profile(output: Output): Promise<void>;
  everything(output: Output, id: string): Promise<Everything | null>;
}

/** The views of outputs, by their elements. */
export const views = new WeakMap<Node, TraceView>();

let present: Surroundings | null = null;

/** Sets the services for all outputs. */
export function surround(surroundings: Surroundings): void {
  present = surroundings;
}

/** The services; null if the plugin is not (yet) active. */
export function surroundings(): Surroundings | null {
  return present;
}
