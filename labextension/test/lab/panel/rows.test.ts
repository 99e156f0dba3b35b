import { beforeEach, expect, test, vi } from 'vitest';
import { CallbackRow, SiteRow } from '../../../src/lab/panel/rows.js';
import { setText } from '../../../src/view/dom/elements.js';
import type { Site } from '../../../src/view/data/schema.js';
import { CALLBACK, SITE } from '../snapshots.js';

const jump = vi.fn();
const NO_LABELS = new Map<string, string>();

beforeEach(() => jump.mockClear());

function site(parts: Partial<Site> = {}): Site {
  return { ...SITE, consequence: 'kept', ...parts };
}

function siteRow(parts: Partial<Site> = {}): SiteRow {
  const row = new SiteRow(jump);
  row.update(site(parts), '');
  return row;
}

function words(node: HTMLElement, selector: string): string[] {
  return [...node.querySelectorAll(selector)].map(found => found.textContent);
}

test('a site shows its status as sign and word, its figures, reason and advice', () => {
  const why = { reason: 'dead', advice: 'use it' };
  const { node } = siteRow({ consequence: 'unused', elided: 2, calls: 0, ...why });
  expect(words(node, '.jaxcb-callsite-status, .jaxcb-callsite-where, .jaxcb-callsite-figures, p')).toEqual([
    '⚠ unused',
    'line 3',
    '0 calls · () → (5,) · 2 elided',
    'Dead.',
    'Use it.'
  ]);
});

test('a failed site shows its status, and its errors as plain text', () => {
  const { node } = siteRow({ consequence: 'raised', errors: ['ValueError: <b>no</b>'] });
  expect(words(node, '.jaxcb-callsite-status, p')).toEqual(['✕ raised', 'ValueError: <b>no</b>']);
  expect(node.classList.contains('jaxcb-tone-error')).toBe(true);
  expect(node.querySelector('b')).toBeNull();
});

test('a site names its cell instead of calling it another one', () => {
  const row = siteRow({ where: 'line 3, another cell (from f, line 9)' });
  expect(words(row.node, '.jaxcb-callsite-where')).toEqual([
    'line 3, another cell (from f, line 9)'
  ]);
  row.update(site({ where: 'line 3, another cell (from f, line 9)' }), '[45]');
  expect(words(row.node, '.jaxcb-callsite-where')).toEqual(['[45] line 3 (from f, line 9)']);
});

test('a site names its cell as the notebook shows it now, and its caller as it ran', () => {
  const where = 'line 3, another cell (from f, line 9, another cell)';
  const row = siteRow({ where, numbered: '[21] line 3 (from f, [4] line 9)' });
  expect(words(row.node, '.jaxcb-callsite-where')).toEqual(['[21] line 3 (from f, [4] line 9)']);
  row.update(row['site']!, '[45]');
  expect(words(row.node, '.jaxcb-callsite-where')).toEqual(['[45] line 3 (from f, [4] line 9)']);
});

test('a callback and its sites name their cells', () => {
  const row = new CallbackRow(jump);
  row.update(CALLBACK, [site()], new Map([['one', '[2]'], ['two', '[45]']]));
  expect(words(row.node, '.jaxcb-callback-jump, .jaxcb-callsite-where')).toEqual([
    'registered at [2] line 2',
    '[45] line 3'
  ]);
});

test('the button of a site jumps to its line, and is disabled for a site in a file', () => {
  siteRow().node.querySelector('button')!.click();
  expect(jump).toHaveBeenCalledWith('two', 3, 'return bessel(1, x)');
  const away = siteRow({ cell_id: null }).node.querySelector('button')!;
  expect(away.disabled).toBe(true);
});

test('updating with equal text does not replace its nodes', () => {
  const row = siteRow({ errors: ['E'] });
  const before = row.node.querySelector('p');
  const text = row.node.querySelector('.jaxcb-callsite-where')!.firstChild;
  row.update(site({ errors: ['E'], calls: 6 }), '');
  expect(row.node.querySelector('p')).toBe(before);
  expect(row.node.querySelector('.jaxcb-callsite-where')!.firstChild).toBe(text);
  setText(row.node, 'new');
  expect(row.node.textContent).toBe('new');
});

test('a callback shows its flavor, figures and problems', () => {
  const row = new CallbackRow(jump);
  row.update({ ...CALLBACK, errors: 2, elided: 1 }, [site()], NO_LABELS);
  expect(words(row.node, 'summary > span')).toEqual([
    'besselpure',
    '5 calls · 41 µs · 1 site',
    '✕ 2 errors · 1 elided'
  ]);
  expect(words(row.node, '.jaxcb-callback-options')).toEqual(['vmap_method=expand_dims']);
});

test('elided calls are not green in the line of a callback', () => {
  const row = new CallbackRow(jump);
  row.update({ ...CALLBACK, elided: 1 }, [site({ elided: 1 })], NO_LABELS);
  const alarms = row.node.querySelector('.jaxcb-callback-alarms')!;
  expect(alarms.classList.contains('jaxcb-tone-quiet')).toBe(true);
  row.update({ ...CALLBACK, elided: 1 }, [site({ consequence: 'unused' })], NO_LABELS);
  expect(alarms.classList.contains('jaxcb-tone-warning')).toBe(true);
});

test('the button of a callback jumps to the line that registers it', () => {
  const row = new CallbackRow(jump);
  row.update({ ...CALLBACK, where: '' }, [], NO_LABELS);
  const button = row.node.querySelector<HTMLButtonElement>('.jaxcb-callback-jump')!;
  expect(button.textContent).toBe('registered at line 2');
  button.click();
  expect(jump).toHaveBeenCalledWith('one', 2, '');
  row.update({ ...CALLBACK, cell: null }, [], NO_LABELS);
  expect(button.hidden).toBe(true);
});

test('a callback without call sites shows a note', () => {
  const row = new CallbackRow(jump);
  row.update(CALLBACK, [], NO_LABELS);
  const none = row.node.querySelector<HTMLElement>('.jaxcb-callback-none')!;
  expect(none.hidden).toBe(false);
  row.update(CALLBACK, [site()], NO_LABELS);
  expect(none.hidden).toBe(true);
});

test('adding and removing sites does not replace the rows of other sites', () => {
  const row = new CallbackRow(jump);
  row.update(CALLBACK, [site()], NO_LABELS);
  const first = row.node.querySelector('li');
  row.update(CALLBACK, [site(), site({ where: 'line 9' })], NO_LABELS);
  expect(words(row.node, '.jaxcb-callsite-where')).toEqual(['line 3', 'line 9']);
  row.update(CALLBACK, [site()], NO_LABELS);
  expect([...row.node.querySelectorAll('li')]).toEqual([first]);
});

test('showing a site opens its row and focuses the site', () => {
  const row = new CallbackRow(jump);
  row.update(CALLBACK, [site(), site()], NO_LABELS);
  document.body.append(row.node);
  row.node.querySelector('details')!.open = false;
  const shown = row.show(1);
  expect(row.node.querySelector('details')!.open).toBe(true);
  expect(shown).toBe(row.node.querySelectorAll('li')[1]);
  expect(shown.contains(document.activeElement)).toBe(true);
  expect(row.show(null)).toBe(row.node);
  expect(document.activeElement).toBe(row.node.querySelector('summary'));
});

test('a site in a file can be focused', () => {
  const row = siteRow({ cell_id: null });
  document.body.append(row.node);
  row.focus();
  expect(document.activeElement).toBe(row.node);
});
