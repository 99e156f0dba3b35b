import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Tabs } from '../../../src/view/dom/tabs.js';

const opened = vi.fn();
let tabs: Tabs;

function buttons(): HTMLElement[] {
  return [...tabs.node.querySelectorAll<HTMLElement>('[role=tab]')];
}

function press(key: string): void {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true });
  document.activeElement!.dispatchEvent(event);
}

beforeEach(() => {
  opened.mockClear();
  const one = { name: 'One', panel: document.createElement('div') };
  const two = { name: 'Two', panel: document.createElement('div') };
  const three = { name: 'Three', panel: document.createElement('div') };
  tabs = new Tabs('t', 'things', [one, two, three], opened);
  tabs.offer(['One', 'Two', 'Three']);
  document.body.append(tabs.node);
});

afterEach(() => document.body.replaceChildren());

describe('Tabs', () => {
  it('initially shows only the first panel', () => {
    const panels = [...tabs.node.querySelectorAll<HTMLElement>('[role=tabpanel]')];
    expect(panels.map(panel => panel.hidden)).toEqual([false, true, true]);
    expect(buttons().map(button => button.tabIndex)).toEqual([0, -1, -1]);
  });

  it('labels each panel with its tab', () => {
    for (const button of buttons()) {
      const panel = document.getElementById(button.getAttribute('aria-controls')!)!;
      expect(panel.getAttribute('aria-labelledby')).toBe(button.id);
    }
  });

  it('opens a panel on a click', () => {
    buttons()[1]!.click();
    expect(tabs.selected).toBe('Two');
    expect(opened).toHaveBeenCalledWith('Two');
    expect(buttons()[1]!.getAttribute('aria-selected')).toBe('true');
  });

  it.each([
    ['ArrowRight', 'Two'],
    ['ArrowLeft', 'Three'],
    ['End', 'Three'],
    ['Home', 'One']
  ])('%s moves the selection and the focus', (key, name) => {
    buttons()[0]!.focus();
    press(key);
    expect(tabs.selected).toBe(name);
    expect(document.activeElement?.textContent).toBe(name);
  });

  it('wraps around at the end', () => {
    tabs.select('Three');
    tabs.focus();
    press('ArrowRight');
    expect(tabs.selected).toBe('One');
  });

  it('ignores other keys', () => {
    buttons()[0]!.focus();
    press('a');
    expect(opened).not.toHaveBeenCalled();
  });

  it('returns to the first panel when the tab list is hidden', () => {
    tabs.select('Two');
    tabs.offer(['One']);
    expect([tabs.selected, tabs.hasBar]).toEqual(['One', false]);
    expect(tabs.node.querySelector('[role=tabpanel]')).toBeNull();
  });

  it('shows a single panel without the tab list, also if it is not the first', () => {
    tabs.offer(['Three']);
    const shown = [...tabs.node.children].map(child => !(child as HTMLElement).hidden);
    expect(shown).toEqual([false, false, false, true]);
    expect(opened).toHaveBeenCalledWith('Three');
  });

  it('hides a tab that is not offered, and keeps the selection of another', () => {
    tabs.select('Three');
    tabs.offer(['One', 'Three']);
    expect(buttons().map(button => button.hidden)).toEqual([false, true, false]);
    expect(tabs.selected).toBe('Three');
    tabs.select('Two');
    expect(tabs.selected).toBe('Three');
  });

  it('skips a hidden tab with the keyboard', () => {
    tabs.offer(['One', 'Three']);
    buttons()[0]!.focus();
    press('ArrowRight');
    expect(tabs.selected).toBe('Three');
    press('ArrowRight');
    expect(tabs.selected).toBe('One');
  });

  it('shows a count after the name of a tab', () => {
    tabs.count('Two', '12');
    expect(buttons()[1]!.textContent).toBe('Two 12');
  });
});
