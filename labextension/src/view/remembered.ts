/** Remembers how the user left the view of a notebook cell; the most important also when the page is reloaded. */

import { historyOf, parseHistory } from './compare/history.js';
import type { Run } from './compare/run.js';
import { EVERYTHING, type Filter, type Layout } from './data/store.js';

export const SITES = 'Sites'; // tabs
export const CALLS = 'Calls';
export const TIME = 'Time';

/** What the user chose in a view. */
export interface Look {
  readonly expanded: boolean;
  readonly tab: string;
  readonly profiled: boolean; // the run; otherwise `expanded` and `tab` are not for a profile
  readonly calls: CallsLook;
  readonly pinned: Run | null; // with which this and later runs are compared
  readonly compared: string; // see `Comparison`
}

/** How the calls are shown; filter, selection and zoom are for the sites of `program`. */
export interface CallsLook {
  readonly program: string; // of which sites; another program has other rows
  readonly filter: Filter;
  readonly selected: number | null;
  readonly layout: Layout;
}

export const NO_CALLS_LOOK: CallsLook = {
  program: '',
  filter: EVERYTHING,
  selected: null,
  layout: { zoom: null, colourBy: 'site', height: null, sort: null }
};

export const NO_LOOK: Look = {
  expanded: false,
  tab: SITES,
  profiled: false,
  calls: NO_CALLS_LOOK,
  pinned: null,
  compared: ''
};

// The widget and JupyterLab's extension are two bundles on one page, so they share a global object.
const KEY = Symbol.for('jupyter_jaxcb.remembered');
type Memory = WeakMap<Element, Map<number, Look>>;

/** How the view at `node` was left before its cell ran again; null: unknown. */
export function remembered(node: Element): Look | null {
  const cell = cellOf(node);
  return (cell && memory().get(cell)?.get(placeIn(cell, node))) ?? null;
}

/** Remembers the look of the view at `node`, which is in the document. */
export function remember(node: Element, look: Look): void {
  const cell = cellOf(node);
  if (cell) {
    const looks = memory().get(cell) ?? new Map<number, Look>();
    memory().set(cell, looks.set(placeIn(cell, node), look));
  }
}

/** Keeps a look for the page that is loaded next in this tab; `cell` names the cell among all notebooks. */
export function handOver(cell: string, node: Element, look: Look): void {
  const { expanded, tab, profiled, pinned, compared } = look;
  if (expanded || pinned) {
    const kept = { expanded, tab, profiled, compared, pinned: pinned && historyOf(pinned) };
    sessionStorage.setItem(storedAs(cell, node), JSON.stringify(kept));
  }
}

/** The look that the page before kept, once; null: none, or it cannot be read. */
export function handedOver(cell: string, node: Element): Look | null {
  const key = storedAs(cell, node);
  const kept = sessionStorage.getItem(key);
  sessionStorage.removeItem(key);
  try {
    const { expanded, tab, profiled, compared, pinned } = JSON.parse(kept ?? 'null');
    const [run = null] = pinned ? parseHistory(pinned) : [];
    const [isOpen, isProfiled] = [expanded === true, profiled === true];
    return {
      ...NO_LOOK, expanded: isOpen, tab: String(tab), profiled: isProfiled, compared: String(compared), pinned: run
    };
  } catch {
    return null;
  }
}

function storedAs(cell: string, node: Element): string {
  const around = cellOf(node);
  return `jupyter_jaxcb ${cell} ${around ? placeIn(around, node) : 0}`;
}

function memory(): Memory {
  const page = globalThis as unknown as Record<symbol, Memory | undefined>;
  return (page[KEY] ??= new WeakMap());
}

function cellOf(node: Element): Element | null {
  return node.closest('.jp-Cell');
}

/** How many views precede `node` in its cell. */
function placeIn(cell: Element, node: Element): number {
  return [...cell.querySelectorAll('.jaxcb-view')].indexOf(node);
}
