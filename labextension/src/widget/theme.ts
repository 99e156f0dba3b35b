/** The theme of a page that keeps widgets in shadow roots, as marimo does. */

/**
 * Gives `element` the attribute of JupyterLab's themes, as the style sheets expect it: selectors in
 * a shadow root do not see the page, but its color scheme is inherited.
 *
 * Returns: a function that stops following the page.
 */
export function followTheme(element: HTMLElement): () => void {
  if (!(element.getRootNode() instanceof ShadowRoot)) {
    return () => undefined;
  }
  const update = (): void => {
    const isDark = getComputedStyle(element).colorScheme === 'dark';
    element.dataset.jpThemeLight = String(!isDark);
  };
  update();
  const page = new MutationObserver(update);
  for (const node of [document.documentElement, document.body]) {
    page.observe(node, { attributes: true });
  }
  return () => page.disconnect();
}
