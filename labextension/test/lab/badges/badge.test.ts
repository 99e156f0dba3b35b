import { expect, test, vi } from 'vitest';
import { Badge, tooltipNode } from '../../../src/lab/badges/badge.js';
import type { Note } from '../../../src/lab/badges/notes.js';
import { BATCHED } from '../../view/recordings.js';

const KEPT: Note = {
  tone: 'kept',
  sign: '●',
  text: '5 calls',
  name: 'bessel',
  title: 'bessel · line 3',
  details: ['pure · unknown', '<b>bold</b>'],
  vmap: null,
  place: { site: 0 }
};
const CALLBACK: Note = { ...KEPT, tone: 'quiet', sign: '', text: 'pure', place: { callback: 1 } };

function badgeNode(notes: readonly Note[], edited = false, open = vi.fn()): HTMLElement {
  return new Badge(notes, edited, false, open).toDOM();
}

test('each note is a button that opens its site or callback', () => {
  const open = vi.fn();
  const node = badgeNode([KEPT, CALLBACK], false, open);
  const buttons = node.querySelectorAll('button');
  expect([...buttons].map(button => button.textContent)).toEqual(['● 5 calls', 'pure']);
  buttons[1]!.click();
  expect(open.mock.calls).toEqual([[{ callback: 1 }, false]]);
});

test('the label for screen readers contains the whole note, and that the cell was edited', () => {
  const label = badgeNode([KEPT], true).querySelector('button')!.getAttribute('aria-label');
  expect(label).toBe(
    'bessel · line 3. 5 calls. pure · unknown. <b>bold</b>. the cell was edited after this run'
  );
});

test('a detail that ends with a period is not given a second one in the label', () => {
  const note = { ...KEPT, details: ['removed (dead-code elimination).', 'Use the result.'] };
  const label = badgeNode([note]).querySelector('button')!.getAttribute('aria-label');
  expect(label).toContain('removed (dead-code elimination). Use the result');
});

test('a badge has the role of a note, and neither the cursor nor the Tab key reaches it', () => {
  const node = badgeNode([KEPT]);
  expect(node.getAttribute('role')).toBe('note');
  expect(node.getAttribute('contenteditable')).toBe('false');
  expect(node.querySelector('button')!.tabIndex).toBe(-1);
});

test('pressing a badge does not move the cursor', () => {
  const press = new MouseEvent('mousedown', { bubbles: true, cancelable: true });
  badgeNode([KEPT]).querySelector('button')!.dispatchEvent(press);
  expect(press.defaultPrevented).toBe(true);
  expect(new Badge([KEPT], false, false, vi.fn()).ignoreEvent()).toBe(true);
});

test('an update reuses buttons, adds missing ones and removes unneeded ones', () => {
  const node = badgeNode([KEPT]);
  const first = node.querySelector('button');
  const open = vi.fn();
  new Badge([{ ...KEPT, text: '6 calls' }, CALLBACK], false, false, open).updateDOM(node);
  expect(node.querySelectorAll('button')[0]).toBe(first);
  expect(node.textContent).toBe('● 6 callspure');
  node.querySelectorAll('button')[1]!.click();
  expect(open).toHaveBeenCalledWith({ callback: 1 }, false);
  new Badge([CALLBACK], false, false, vi.fn()).updateDOM(node);
  expect(node.textContent).toBe('pure');
});

test('badges are equal if their notes and edited states are equal', () => {
  const badge = (notes: readonly Note[], edited: boolean): Badge =>
    new Badge(notes, edited, false, vi.fn());
  expect(badge([KEPT], false).eq(badge([{ ...KEPT }], false))).toBe(true);
  expect(badge([KEPT], false).eq(badge([KEPT], true))).toBe(false);
  expect(badge([KEPT], false).eq(badge([CALLBACK], false))).toBe(false);
});

test('the tooltip shows every detail, as plain text', () => {
  const tip = tooltipNode([KEPT], true, true, false, vi.fn());
  expect(tip.getAttribute('role')).toBe('tooltip');
  expect(tip.querySelector('b')).toBeNull();
  expect([...tip.querySelectorAll('strong, p')].map(line => line.textContent)).toEqual([
    '● bessel · line 3',
    'pure · unknown',
    '<b>bold</b>',
    'Outdated: the cell was edited after this run.'
  ]);
  expect(tooltipNode([KEPT], true, false, false, vi.fn()).textContent).not.toContain('edited');
});

test('the tooltip of a call under vmap has a small diagram, which is never focused', () => {
  const tip = tooltipNode([{ ...KEPT, vmap: BATCHED }, KEPT], true, false, false, vi.fn());
  expect(tip.querySelector('.jaxcb-tip-vmap strong')?.textContent).toBe('1 call for 4 elements');
  const diagrams = tip.querySelectorAll('.jaxcb-batching');
  expect(diagrams.length).toBe(1);
  expect(diagrams[0]!.getAttribute('aria-label')).toContain('z: 4 batched; one call receives (4,)');
  expect(diagrams[0]!.hasAttribute('tabindex')).toBe(false);
  expect(tip.querySelector('.jaxcb-batching-legend')).toBeNull();
});

test('the label for screen readers says how batch elements are spread over calls', () => {
  const label = badgeNode([{ ...KEPT, vmap: BATCHED }]).querySelector('button')!.getAttribute('aria-label');
  expect(label).toContain('1 call for 4 elements');
});

test('notes that look the same are one button, which opens the first of them', () => {
  const open = vi.fn();
  const same = { ...KEPT, title: 'bessel · line 3 (from line 9)', place: { site: 1 } };
  const node = badgeNode([KEPT, same, CALLBACK], false, open);
  expect([...node.querySelectorAll('button')].map(one => one.textContent)).toEqual(['● 5 calls · 2 sites', 'pure']);
  node.querySelectorAll('button')[1]!.click();
  expect(open.mock.calls).toEqual([[{ callback: 1 }, false]]);
});

test('the tooltip of a badge that is not cut does not repeat it', () => {
  const note = { ...KEPT, text: 'bessel: 5 calls · 41 µs', details: ['pure · 5 calls · 41 µs · queued', 'Why.'] };
  const lines = (cut: boolean): (string | null)[] =>
    [...tooltipNode([note], cut, false, false, vi.fn()).querySelectorAll('p')].map(p => p.textContent);
  expect(lines(false)).toEqual(['pure · queued', 'Why.']);
  expect(lines(true)).toEqual(note.details);
  const failed = { ...KEPT, text: 'ValueError: no luck', details: ['pure', 'ValueError: no luck'] };
  const tip = tooltipNode([failed], false, false, false, vi.fn());
  expect([...tip.querySelectorAll('p')].map(p => p.textContent)).toEqual(['pure']);
});
