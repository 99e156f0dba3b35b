/**
 * The side panel: every callback of the current notebook's kernel, or what its saved traces say.
 */

import { h, menu, setText } from '../../view/dom/elements.js';
import { pointAt } from '../../view/dom/point.js';
import { counted, joined } from '../../view/data/words.js';
import { NO_CELLS, type Cells } from './cells.js';
import { filtered, groupsOf, ORDERS, sorted, type Group, type Order } from './groups.js';
import type { Place } from '../badges/notes.js';
import { CallbackRow, type Jump } from './rows.js';
import type { NotebookState } from '../kernel/service.js';
import type { Snapshot } from '../kernel/snapshot.js';
import { sentences } from '../words.js';

const MANY = 4; // number of callbacks from which their order can be chosen
const REFRESH_MS = 500;
const SAVED = 'This is what the host traces saved in this notebook show. ';

/** Text, or code in it. */
type Words = string | { readonly code: string };

const NO_CALLBACKS: readonly Words[] = [
  'No callbacks yet. Begin a cell with ',
  { code: '%%jax_callback pure' }
];

/** Shows the current notebook; rows keep their elements between updates. */
export class Panel {
  readonly node = h('section', { class: 'jaxcb-panel', 'aria-label': 'JAX callbacks' });
  private readonly head = h('div', { class: 'jaxcb-panel-head' });
  private readonly status = h('p', { class: 'jaxcb-panel-status', role: 'status' });
  private readonly about = h('p', { class: 'jaxcb-panel-about' });
  private readonly empty = h('p', { class: 'jaxcb-panel-empty' });
  private readonly list = h('ul', { class: 'jaxcb-callbacks', 'aria-label': 'Callbacks' });
  private readonly filter = h('input', {
    type: 'search',
    class: 'jaxcb-panel-filter',
    placeholder: 'Filter',
    'aria-label': 'Filter by function, flavor, status or cell'
  });
  private readonly order = menu('Order of callbacks', ORDERS, 'jaxcb-panel-order');
  private readonly tools = h('div', { class: 'jaxcb-panel-tools' }, this.filter, this.order);
  private rows = new Map<string, CallbackRow>();
  private notebook: NotebookState | null = null;
  private cells: Cells = NO_CELLS;
  private off: () => void = () => undefined;
  private soon: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly jump: Jump) {
    this.head.append(this.status, this.about, this.tools);
    this.node.append(this.head, this.empty, this.list);
    this.filter.addEventListener('input', () => this.update());
    this.order.addEventListener('change', () => this.update());
    this.update();
  }

  /** Switches to this notebook and its cells; null: there is no notebook. */
  follow(notebook: NotebookState | null, cells: Cells = NO_CELLS): void {
    if (notebook === this.notebook) {
      return;
    }
    this.off();
    this.notebook = notebook;
    this.cells = cells;
    this.off = notebook?.on(() => this.update()) ?? (() => undefined);
    this.rows.clear();
    this.filter.value = '';
    this.update();
  }

  /** Shows changes of the notebook's cells, but not those of every key. */
  refreshSoon(): void {
    this.soon ??= setTimeout(() => {
      this.soon = undefined;
      this.update();
    }, REFRESH_MS);
  }

  /** Scrolls to a site or a callback of `from` and focuses it; saved ones are not beside live ones. */
  show(place: Place, from: Snapshot): void {
    const snapshot = this.notebook?.received.snapshot ?? this.cells.saved();
    if (snapshot.version !== from.version) {
      return;
    }
    this.filter.value = '';
    this.update();
    const order = this.order.value as Order;
    const group = sorted(snapshot, groupsOf(snapshot), order).find(({ callback, sites }) =>
      'site' in place
        ? sites.includes(place.site)
        : callback === snapshot.callbacks[place.callback]
    );
    const row = group && this.rows.get(group.key);
    if (row) {
      pointAt(row.show('site' in place ? group.sites.indexOf(place.site) : null));
    }
  }

  dispose(): void {
    clearTimeout(this.soon);
    this.off();
  }

  private update(): void {
    const live = this.notebook?.received.snapshot ?? null;
    const snapshot = live ?? this.cells.saved();
    const groups = groupsOf(snapshot);
    const none = groups.length === 0;
    this.head.hidden = none;
    this.order.hidden = groups.length < MANY;
    this.status.classList.toggle('jaxcb-running', snapshot.running);
    setText(this.status, joined([this.cells.name(), statusWords(snapshot, live !== null)]));
    this.fill(groups, snapshot);
    const why = live ? NO_CALLBACKS : this.whyNotLive();
    setWords(this.about, live || none ? [] : [SAVED, ...why]);
    const unmatched = this.list.children.length === 0 ? ['No matching callbacks.'] : [];
    setWords(this.empty, none ? why : unmatched);
  }

  private fill(groups: readonly Group[], snapshot: Snapshot): void {
    const labels = this.cells.labels();
    const shown = sorted(snapshot, groups, this.order.value as Order).flatMap(
      group => filtered(snapshot, group, this.filter.value, labels) ?? []
    );
    const rows = new Map(
      groups.map(({ key }) => [key, this.rows.get(key) ?? new CallbackRow(this.jump)])
    );
    for (const { key, callback, sites } of shown) {
      rows.get(key)!.update(callback, sites.map(site => snapshot.sites[site]!), labels);
    }
    this.rows = rows;
    const nodes = shown.map(group => rows.get(group.key)!.node);
    const { children } = this.list;
    // Only if needed, because moving a node takes the focus from its content.
    if (nodes.length !== children.length || nodes.some((node, i) => node !== children[i])) {
      this.list.replaceChildren(...nodes);
    }
  }

  private whyNotLive(): readonly Words[] {
    if (!this.notebook) {
      return ['No notebook is open.'];
    }
    if (this.notebook.received.trouble) {
      return sentences(this.notebook.received.trouble);
    }
    return this.notebook.hasKernel
      ? ['This kernel has not loaded jupyter_jaxcb. Run ', { code: '%load_ext jupyter_jaxcb' }]
      : ['This notebook has no kernel.'];
  }
}

function statusWords({ callbacks, more_sites, running }: Snapshot, live: boolean): string {
  const count = counted(callbacks.length, 'callback');
  const more = more_sites ? `${counted(more_sites, 'call site')} not shown` : '';
  return joined([count, live ? '' : 'saved results', more, running ? 'running' : '']);
}

function setWords(node: HTMLElement, words: readonly Words[]): void {
  const text = words.map(word => (typeof word === 'string' ? word : word.code)).join('');
  if (node.textContent !== text) {
    const parts = words.map(word => (typeof word === 'string' ? word : h('code', {}, word.code)));
    node.replaceChildren(...parts);
  }
  node.hidden = text === '';
}
