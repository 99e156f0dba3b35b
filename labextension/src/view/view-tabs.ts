/** Tabs that follow the ARIA pattern: arrow keys move between tabs, the panel follows. */

import { h } from './dom.js';

export interface Tab {
  readonly name: string;
  readonly panel: HTMLElement;
}

interface Entry extends Tab {
  readonly button: HTMLButtonElement;
}

export class Tabs {
  readonly node = h('div', { class: 'jaxcb-tabs' });
  private readonly bar = h('div', { class: 'jaxcb-tablist', role: 'tablist' });
  private readonly entries: readonly Entry[];
  private current: Entry;

  /**
   * Args:
   *   id: prefix of element ids, unique on the page.
   *   label: label of the tab list.
   *   opened: called when a panel is shown.
   */
  constructor(
    id: string,
    label: string,
    tabs: readonly [Tab, ...Tab[]],
    private readonly opened: (name: string) => void
  ) {
    this.bar.setAttribute('aria-label', label);
    this.entries = tabs.map((tab, place) => ({ ...tab, button: tabButton(`${id}-${place}`, tab) }));
    this.current = this.entries[0]!;
    for (const entry of this.entries) {
      entry.button.addEventListener('click', () => this.select(entry.name));
      this.bar.append(entry.button);
    }
    this.bar.addEventListener('keydown', this.pressed);
    this.node.append(this.bar, ...this.entries.map(entry => entry.panel));
    this.mark();
  }

  get selected(): string {
    return this.current.name;
  }

  /** Shows a panel. */
  select(name: string): void {
    this.current = this.entries.find(entry => entry.name === name) ?? this.current;
    this.mark();
    this.opened(this.current.name);
  }

  /** Whether the tab list is shown. */
  get hasBar(): boolean {
    return !this.bar.hidden;
  }

  focus(): void {
    this.current.button.focus();
  }

  /** Shows or hides the tab list; without it only the first panel is shown. */
  showBar(shown: boolean): void {
    this.bar.hidden = !shown;
    for (const { button, panel } of this.entries) {
      attribute(panel, 'role', shown && 'tabpanel');
      attribute(panel, 'aria-labelledby', shown && button.id);
    }
    if (!shown && this.current !== this.entries[0]) {
      this.select(this.entries[0]!.name);
    }
  }

  /** Sets the count after the name of a tab. */
  count(name: string, words: string): void {
    const entry = this.entries.find(one => one.name === name);
    entry?.button.replaceChildren(name, ' ', h('span', { class: 'jaxcb-tab-count' }, words));
  }

  private mark(): void {
    for (const entry of this.entries) {
      const on = entry === this.current;
      entry.button.setAttribute('aria-selected', String(on));
      entry.button.tabIndex = on ? 0 : -1;
      entry.panel.hidden = !on;
    }
  }

  private readonly pressed = (event: KeyboardEvent): void => {
    const place = this.entries.indexOf(this.current);
    const last = this.entries.length - 1;
    const next = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: last }[event.key];
    if (next === undefined) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    this.select(this.entries.at(next > last ? 0 : next)!.name);
    this.focus();
  };
}

function tabButton(id: string, { name, panel }: Tab): HTMLButtonElement {
  panel.id = `${id}-panel`;
  return h(
    'button',
    { class: 'jaxcb-tab', id, type: 'button', role: 'tab', 'aria-controls': panel.id },
    name
  );
}

function attribute(node: HTMLElement, name: string, value: string | false): void {
  if (value === false) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value);
  }
}
