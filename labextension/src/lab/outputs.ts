/** Shows the outputs beside the host trace: their HTML, with links to the lines that it names. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { conform } from '../view/data/parse/conform.js';
import { placeIn } from '../view/data/words.js';
import type { Spot } from '../view/data/schema.js';
import { button, h, svg } from '../view/dom/elements.js';
import type { Target } from '../view/sites/row.js';
import { surroundings } from './around.js';

export const OUTPUT_TYPE = 'application/vnd.jupyter-jaxcb.report.v1+json';

const TAGS = new Set(
  'abbr b br caption code details div li p span strong summary table tbody td th thead tr ul'.split(' ')
);
const PLOT_TAGS = new Set('polygon polyline rect svg text title'.split(' '));
const ATTRIBUTES = (
  'aria-label height points preserveAspectRatio role text-anchor title viewBox width x y'
).split(' ');
const OURS = /^jaxcb-[a-z-]+$/;

/** The elements of `html` that outputs have, with links; nothing else, because it may be hostile. */
export function drawn(html: string, places: readonly Spot[], go: (to: Target) => void): Node[] {
  const left = [...places];
  const copy = (node: Node): Node[] => {
    if (node instanceof Text) {
      return [document.createTextNode(node.data)];
    }
    const tag = node instanceof Element ? node.localName : '';
    const inPlot = node instanceof SVGElement;
    if (!(inPlot ? PLOT_TAGS : TAGS).has(tag)) {
      return [];
    }
    const from = node as Element;
    if (from.classList.contains('jaxcb-place')) {
      return [linkOf(from.textContent ?? '', from.getAttribute('title'), left.shift(), go)];
    }
    const attributes = ATTRIBUTES.map(name => [name, from.getAttribute(name)] as const);
    const scope = tag === 'th' ? { scope: 'col' } : {};
    const set = { class: classes(from) || null, ...Object.fromEntries(attributes), ...scope };
    const element = inPlot ? svg(tag as 'svg', set) : h(tag as 'div', set);
    element.append(...[...from.childNodes].flatMap(copy));
    return [element];
  };
  const { body } = new DOMParser().parseFromString(html, 'text/html');
  return [...body.childNodes].flatMap(copy);
}

/** The classes of an element that are ours. */
function classes(from: Element): string {
  return [...from.classList].filter(name => OURS.test(name)).join(' ');
}

function linkOf(
  words: string,
  title: string | null,
  place: Spot | undefined,
  go: (to: Target) => void
): HTMLElement {
  const shown = place?.number ? placeIn(`[${place.number}]`, words) : words;
  if (!place?.cell) {
    return h('span', { class: 'jaxcb-place' }, shown);
  }
  const { cell, line, source } = place;
  const to = { cell, line, source, elsewhere: true };
  return button({ class: 'jaxcb-link', title: `go to ${title ?? shown}` }, () => go(to), shown);
}

class OutputRenderer extends Widget implements IRenderMime.IRenderer {
  constructor() {
    super();
    this.addClass('jaxcb-view');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const go = (to: Target): void => surroundings()?.({ node: this.node, model }).reveal(to);
    const open = this.details().map(each => each.open); // of plots, while the cell runs
    const [outer] = drawn(String(model.data['text/html'] ?? ''), placesOf(model), go);
    this.node.replaceChildren(...(outer?.childNodes ?? []));
    this.node.classList.add(...(outer instanceof Element ? outer.classList : []));
    this.details().forEach((each, place) => (each.open = open[place] ?? false));
  }

  private details(): HTMLDetailsElement[] {
    return [...this.node.querySelectorAll('details')];
  }
}

function placesOf({ metadata }: IRenderMime.IMimeModel): readonly Spot[] {
  return conform('Spots', metadata[OUTPUT_TYPE] ?? {})[0].places;
}

export const outputs: IRenderMime.IExtension = {
  id: 'jupyter-jaxcb:outputs',
  description: 'Shows checks, matrices and tables of JAX callbacks in outputs.',
  rendererFactory: {
    safe: true,
    mimeTypes: [OUTPUT_TYPE],
    createRenderer: () => new OutputRenderer()
  },
  rank: -10, // preferred to the HTML of the same output
  dataType: 'json'
};
