/** Tabs that follow the ARIA pattern: arrow keys move between tabs, the panel follows. */

import { h, set } from './elements.js';

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
  private offered: readonly Entry[];
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
    this.offered = this.entries;
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

  /** Shows a panel, if it is offered. */
  select(name: string): void {
    this.current = this.offered.find(entry => entry.name === name) ?? this.current;
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

  /** Offers some of the panels, at least one; a single panel is shown without the tab list. */
  offer(names: readonly string[]): void {
    this.offered = this.entries.filter(entry => names.includes(entry.name));
    const shown = this.offered.length > 1;
    this.bar.hidden = !shown;
    for (const { button, panel } of this.entries) {
      if (shown) {
        set(panel, { role: 'tabpanel', 'aria-labelledby': button.id });
      } else {
        ['role', 'aria-labelledby'].forEach(name => panel.removeAttribute(name));
      }
    }
    if (this.offered.includes(this.current)) {
      this.mark();
    } else {
      this.current = this.offered[0]!;
      this.select(this.current.name);
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
      entry.button.hidden = !this.offered.includes(entry);
      entry.button.setAttribute('aria-selected', String(on));
      entry.button.tabIndex = on ? 0 : -1;
      entry.panel.hidden = !on;
    }
  }

  private readonly pressed = (event: KeyboardEvent): void => {
    const place = this.offered.indexOf(this.current);
    const last = this.offered.length - 1;
    const next = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: last }[event.key];
    if (next === undefined) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    this.select(this.offered.at(next > last ? 0 : next)!.name);
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
