/** The name of a call site, as in `bessel, line 3`, of which only the function may be cut. */

import { h } from './elements.js';

/** The function and the line; never without its line: two sites may differ in it alone. */
export function siteName(name: string): HTMLElement[] {
  const line = name.lastIndexOf(', ') < 0 ? name.length : name.lastIndexOf(', ');
  return [h('span', {}, name.slice(0, line)), h('span', {}, name.slice(line))];
}
