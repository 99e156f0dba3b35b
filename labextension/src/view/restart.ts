/** What restarts the kernel of the notebook that an output is in. */

/** Returns what restarts the kernel behind an element; null: no kernel runs there. */
type FindRestart = (node: Element) => (() => void) | null;

// The widget and JupyterLab's extension are two bundles on one page, so they share a global object.
const KEY = Symbol.for('jupyter_jaxcb.restart');
const page = globalThis as unknown as Record<symbol, FindRestart | undefined>;

/** Offers restarts in this page; JupyterLab's extension does. */
export function offerRestart(find: FindRestart): void {
  page[KEY] = find;
}

/** What restarts the kernel behind `node`, which is in the document; null: nothing here does. */
export function restartOf(node: Element): (() => void) | null {
  return page[KEY]?.(node) ?? null;
}
