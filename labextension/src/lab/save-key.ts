/** Saves the notebook on Ctrl+S while an element of this extension has the focus. */

const OURS = '.jaxcb-view, .jaxcb-panel, .jaxcb-badge';

/**
 * Calls `save` on Ctrl+S, or ⌘S, in our elements.
 *
 * These suppress JupyterLab's shortcuts, because "d d" would delete the cell. Without this listener
 * the browser would open its own dialog to save the page.
 */
export function listenForSave(save: () => void): void {
  document.addEventListener('keydown', event => {
    const accelerated = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    const target = event.target as Element | null;
    if (accelerated && event.key.toLowerCase() === 's' && target?.closest(OURS)) {
      event.preventDefault();
      save();
    }
  });
}
