/**
 * The services of JupyterLab that an output in a notebook can use.
 *
 * JupyterLab loads output renderers separately from plugins and gives them no services. A plugin
 * provides them through this module, which both import.
 */

import type { Widget } from '@lumino/widgets';
import type { Around, TraceView } from '../view/view.js';

/** An output: its element and JupyterLab's model of it. */
export interface Output {
  readonly node: Node;
  readonly model: object | null;
}

/** What an output can use. */
export interface Services extends Required<Pick<Around, 'reveal' | 'apply' | 'rerun' | 'save' | 'everything'>> {
  /** A name of the output's cell among those of all notebooks; empty: it is in none. */
  cell(): string;
  /** Shows a widget about the output in a tab of its own. */
  openTab(widget: Widget): void;
}

/** Returns the services for an output. */
export type Surroundings = (output: Output) => Services;

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
