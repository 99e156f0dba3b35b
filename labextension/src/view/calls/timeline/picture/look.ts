/** Observes changes of size and theme. */

/** Calls `changed` after every change; returns a function that stops this. */
export function watchLook(element: Element, changed: () => void): () => void {
  const size = typeof ResizeObserver === 'function' ? new ResizeObserver(changed) : null;
  size?.observe(element);
  const theme = new MutationObserver(changed);
  const attributeFilter = ['data-jp-theme-light', 'data-jp-theme-name', 'class'];
  theme.observe(document.body, { attributes: true, attributeFilter, childList: true });
  // JupyterLab adds a theme's style sheet to the body after it has changed the theme's name.
  document.addEventListener('load', changed, true);
  const queries = ['(prefers-color-scheme: dark)', '(forced-colors: active)'];
  const media = typeof matchMedia === 'function' ? queries.map(each => matchMedia(each)) : [];
  media.forEach(each => each.addEventListener('change', changed));
  return () => {
    size?.disconnect();
    theme.disconnect();
    document.removeEventListener('load', changed, true);
    media.forEach(each => each.removeEventListener('change', changed));
  };
}
