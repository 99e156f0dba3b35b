/**
 * The services of JupyterLab that an output in a notebook can use.
 *
 * JupyterLab loads output renderers separately from plugins and gives them no services. A plugin
 * provides them through this module, which both import.
 */

import type { Everything } from '../view/view.js';

/** A line in the cell with that id; null: in the cell of the output itself. */
export interface Target {
  readonly cell: string | null;
  readonly line: number;
  readonly column: number;
}

export interface Surroundings {
  reveal(output: Node, target: Target): void;
  everything(output: Node, id: string): Promise<Everything | null>;
}

let present: Surroundings | null = null;

/** Sets the services for all outputs. */
export function surround(surroundings: Surroundings): void {
  present = surroundings;
}

/** The services; null if the plugin is not (yet) active. */
export function surroundings(): Surroundings | null {
  return present;
}
