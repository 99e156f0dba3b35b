/** What can have the focus in `root`, but does not keep its keys from JupyterLab's shortcuts. */
export function unkept(root: Element): string[] {
  return [...root.querySelectorAll<HTMLElement>('*')]
    .filter(node => node.tabIndex >= 0 || node.matches('summary, [tabindex]'))
    .filter(node => node.getAttribute('data-lm-suppress-shortcuts') !== 'true')
    .map(node => node.outerHTML);
}
