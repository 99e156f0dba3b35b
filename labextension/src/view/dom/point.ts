/** Scrolls to `node`, and marks it until another element of its view or panel is marked. */
export function pointAt(node: HTMLElement): void {
  const root = node.closest('.jaxcb-view, .jaxcb-panel') ?? node;
  root.querySelector('[aria-current]')?.removeAttribute('aria-current');
  node.setAttribute('aria-current', 'true');
  node.scrollIntoView({ block: 'nearest' });
}
