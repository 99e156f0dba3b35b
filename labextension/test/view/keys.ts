/** The focusable elements in `root` that do not suppress JupyterLab's shortcuts. */
export function withoutSuppression(root: Element): string[] {
  return [...root.querySelectorAll<HTMLElement>('*')]
    .filter(node => node.tabIndex >= 0 || node.matches('summary, [tabindex]'))
    .filter(node => node.getAttribute('data-lm-suppress-shortcuts') !== 'true')
    .map(node => node.outerHTML);
}
