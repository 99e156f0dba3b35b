import { afterEach, expect, it, vi } from 'vitest';

import { followTheme } from '../../src/widget/theme.js';

let scheme = 'dark';

afterEach(() => {
  vi.restoreAllMocks();
  document.body.replaceChildren();
  document.body.removeAttribute('class');
});

/** An element in a shadow root, on a page whose color scheme is `scheme`. */
function inShadow(): HTMLElement {
  vi.spyOn(window, 'getComputedStyle').mockImplementation(
    () => ({ colorScheme: scheme }) as CSSStyleDeclaration
  );
  const host = document.createElement('div');
  const element = document.createElement('div');
  host.attachShadow({ mode: 'open' }).append(element);
  document.body.append(host);
  return element;
}

it('an element in a shadow root follows the color scheme of the page until it is left', async () => {
  scheme = 'dark';
  const element = inShadow();
  const leave = followTheme(element);
  expect(element.dataset.jpThemeLight).toBe('false');
  scheme = 'light';
  document.body.className = 'light';
  await vi.waitFor(() => expect(element.dataset.jpThemeLight).toBe('true'));
  leave();
  scheme = 'dark';
  document.body.className = 'dark';
  await Promise.resolve();
  expect(element.dataset.jpThemeLight).toBe('true');
});

it('an element outside shadow roots keeps the theme of the page', () => {
  const element = document.createElement('div');
  document.body.append(element);
  followTheme(element)();
  expect(element.dataset.jpThemeLight).toBeUndefined();
});
