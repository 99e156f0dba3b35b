/** The side panel: every callback of the current notebook's kernel. */

import { h } from '../../view/dom.js';
import { groupsOf, matches, ORDERS, sorted, type Group, type Order } from './groups.js';
import type { Place } from '../badges/notes.js';
import { CallbackRow, setText, type Jump } from './rows.js';
import type { NotebookState } from '../kernel/service.js';
import type { Snapshot } from '../kernel/snapshot.js';
import { counted } from '../../view/data/words.js';
import { joined, sentences } from '../words.js';

const MANY = 4; // number of callbacks from which the filter is shown

/** Shows the current notebook; rows keep their elements between updates. */
export class Panel {
  readonly node = h('section', { class: 'jaxcb-panel', 'aria-label': 'JAX callbacks' });
  private readonly head = h('div', { class: 'jaxcb-panel-head' });
  private readonly status = h('p', { class: 'jaxcb-panel-status', role: 'status' });
  private readonly empty = h('p', { class: 'jaxcb-panel-empty' });
  private readonly list = h('ul', { class: 'jaxcb-callbacks', 'aria-label': 'Callbacks' });
  private readonly filter = h('input', {
    type: 'search',
    class: 'jaxcb-panel-filter',
    placeholder: 'Filter',
    'aria-label': 'Filter callbacks'
  });
  private readonly order = orderSelect();
  private readonly tools = h('div', { class: 'jaxcb-panel-tools' }, this.filter, this.order);
  private rows = new Map<string, CallbackRow>();
  private notebook: NotebookState | null = null;
  private off: () => void = () => undefined;

  constructor(private readonly jump: Jump) {
    this.head.append(this.status, this.tools);
    this.node.append(this.head, this.empty, this.list);
    this.filter.addEventListener('input', () => this.update());
    this.order.addEventListener('change', () => this.update());
    this.update();
  }

  /** Switches to this notebook; null: there is no notebook. */
  follow(notebook: NotebookState | null): void {
    if (notebook === this.notebook) {
      return;
    }
    this.off();
    this.notebook = notebook;
    this.off = notebook?.on(() => this.update()) ?? (() => undefined);
    this.rows.clear();
    this.filter.value = '';
    this.update();
  }

  /** Scrolls to a site or a callback and focuses it. */
  show(place: Place): void {
    const snapshot = this.notebook?.received.snapshot;
    if (!snapshot) {
      return;
    }
    this.filter.value = '';
    this.update();
    const group = groupsOf(snapshot).find(({ callback, sites }) =>
      'site' in place
        ? sites.includes(place.site)
        : callback === snapshot.callbacks[place.callback]
    );
    const row = group && this.rows.get(group.key);
    if (row) {
      flash(row.show('site' in place ? group.sites.indexOf(place.site) : null));
    }
  }

  dispose(): void {
    this.off();
  }

  private update(): void {
    const snapshot = this.notebook?.received.snapshot ?? null;
    const groups = snapshot ? groupsOf(snapshot) : [];
    this.head.hidden = groups.length === 0;
    this.tools.hidden = groups.length < MANY;
    this.status.classList.toggle('jaxcb-running', snapshot?.running ?? false);
    setText(this.status, snapshot ? statusWords(snapshot) : '');
    this.fill(groups, snapshot);
    const [words, code] = this.emptyWords(snapshot, groups);
    if (this.empty.textContent !== words + code) {
      this.empty.replaceChildren(words, ...(code ? [h('code', {}, code)] : []));
    }
    this.empty.hidden = words === '';
  }

  private fill(groups: readonly Group[], snapshot: Snapshot | null): void {
    const rows = new Map<string, CallbackRow>();
    for (const { key, callback, sites } of groups) {
      const row = this.rows.get(key) ?? new CallbackRow(this.jump);
      row.update(callback, sites.map(site => snapshot!.sites[site]!));
      rows.set(key, row);
    }
    this.rows = rows;
    const shown = sorted(groups, this.order.value as Order).filter(group =>
      matches(snapshot!, group, this.filter.value)
    );
    const nodes = shown.map(group => rows.get(group.key)!.node);
    const { children } = this.list;
    // Only if needed, because moving a node takes the focus from its content.
    if (nodes.length !== children.length || nodes.some((node, i) => node !== children[i])) {
      this.list.replaceChildren(...nodes);
    }
  }

  private emptyWords(
    snapshot: Snapshot | null,
    groups: readonly Group[]
  ): [words: string, code: string] {
    if (!this.notebook) {
      return ['No notebook is open.', ''];
    }
    if (this.notebook.received.trouble) {
      return [sentences(this.notebook.received.trouble)[0]!, ''];
    }
    if (!snapshot) {
      return this.notebook.hasKernel
        ? ['This kernel has not loaded jupyter_jaxcb. Run ', '%load_ext jupyter_jaxcb']
        : ['This notebook has no kernel.', ''];
    }
    if (groups.length === 0) {
      return ['No callbacks yet. Begin a cell with ', '%%jax_callback pure'];
    }
    return this.list.children.length === 0 ? ['No matching callbacks.', ''] : ['', ''];
  }
}

function statusWords({ callbacks, more_sites, running }: Snapshot): string {
  const more = more_sites ? `${counted(more_sites, 'call site')} not shown` : '';
  return joined([counted(callbacks.length, 'callback'), more, running ? 'running' : '']);
}

function orderSelect(): HTMLSelectElement {
  const options = Object.entries(ORDERS).map(([value, words]) => h('option', { value }, words));
  const attributes = { class: 'jaxcb-panel-order', 'aria-label': 'Order of callbacks' };
  return h('select', attributes, ...options);
}

function flash(node: HTMLElement): void {
  node.scrollIntoView({ block: 'nearest' });
  node.classList.remove('jaxcb-flash');
  void node.offsetWidth; // restarts the animation
  node.classList.add('jaxcb-flash');
}
