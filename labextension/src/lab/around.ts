/**
 * What an output in a notebook can ask of JupyterLab.
 *
 * JupyterLab loads renderers of outputs apart from plugins, and gives them none of its services; a
 * plugin fills in this module instead, which both share.
 */

import type { Everything } from '../view/view.js';

/** A line, in the cell of that id; null: in the cell whose output asks. */
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

/** Makes `surroundings` what every output asks. */
export function surround(surroundings: Surroundings): void {
  present = surroundings;
}

/** Null until the plugin is there; it may never be. */
export function surroundings(): Surroundings | null {
  return present;
}
