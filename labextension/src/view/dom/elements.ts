/** Creates elements; strings become text nodes and attribute values, never HTML. */

export type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined>;

/** Creates an element with attributes (`false`, `null`: omitted; `true`: empty) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, attributes);
  add(element, children);
  return element;
}

/** Creates a button that acts on a click. */
export function button(
  attributes: Attributes,
  act: () => unknown,
  ...children: Child[]
): HTMLButtonElement {
  const node = h('button', { type: 'button', ...attributes }, ...children);
  node.addEventListener('click', () => void act());
  return node;
}

/** Creates a menu of words by value. */
export function menu(label: string, words: Readonly<Record<string, string>>, css = ''): HTMLSelectElement {
  const options = Object.entries(words).map(([value, text]) => h('option', { value }, text));
  return h('select', { class: css || null, 'aria-label': label }, ...options);
}

const SVG = 'http://www.w3.org/2000/svg';

/** As `h`, for SVG. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  set(element, attributes);
  add(element, children);
  return element;
}

const FOCUSABLE = 'a[href], button, canvas, input, select, summary, textarea, [tabindex]';

/** Sets attributes; focusable elements also suppress JupyterLab's keyboard shortcuts. */
export function set(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  // In a notebook "d d" deletes the cell. Setting this on a parent is not enough, because
  // JupyterLab's selectors match the focused element first.
  if (element.matches(FOCUSABLE)) {
    element.setAttribute('data-lm-suppress-shortcuts', 'true');
  }
}

/** Appends children. */
export function add(element: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(typeof child === 'number' ? String(child) : child);
    }
  }
}

/** Gives `list` the first `count` of `rows`, and makes those that are missing. */
export function resize<R extends { readonly node: Node }>(
  list: Node,
  rows: R[],
  count: number,
  make: () => R
): void {
  rows.splice(count).forEach(({ node }) => list.removeChild(node));
  while (rows.length < count) {
    const row = make();
    rows.push(row);
    list.appendChild(row.node);
  }
}

/** Sets the text of a node if it differs: equal text is not announced again and stays selected. */
export function setText(node: HTMLElement, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

/** Words with dots between them; where a line ends there, the dot begins the next one. */
export function dotted(words: string | readonly HTMLElement[]): (HTMLElement | string)[] {
  const parts = typeof words === 'string' ? words.split(' · ') : words;
  const after = (part: HTMLElement | string): HTMLElement =>
    h('span', { class: 'jaxcb-dotted' }, '· ', h('span', {}, part));
  return parts.flatMap((part, nth) => (nth ? [' ', after(part)] : [part]));
}
