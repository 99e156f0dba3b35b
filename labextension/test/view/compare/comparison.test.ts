import { beforeEach, describe, expect, test } from 'vitest';

import { Comparison } from '../../../src/view/compare/comparison.js';
import type { Run, RunSite } from '../../../src/view/compare/run.js';
import { withoutSuppression } from '../keys.js';

const SITE: RunSite = {
  function: 'bessel',
  flavor: 'pure',
  where: 'line 3',
  source: 'y = bessel(x)',
  consequence: 'kept',
  calls: 100,
  total: 1_000_000,
  p95: 36_000
};
const FIRST: Run = { id: 'r1', number: 0, code: null, sites: [SITE] };
const SECOND: Run = { ...FIRST, id: 'r2', sites: [{ ...SITE, calls: 140, p95: 72_000, total: null }] };

let comparison: Comparison;

beforeEach(() => {
  comparison = new Comparison();
  document.body.replaceChildren(comparison.button, comparison.words, comparison.node);
});

/** Shows a run, and what it is compared with. */
function show(run: Run, pinned: Run | null): void {
  comparison.pinned = pinned;
  comparison.show(run);
}

function buttons(): HTMLElement[] {
  return [...comparison.node.querySelectorAll('button')].filter(button => !button.hidden);
}

function rows(): string[][] {
  return [...comparison.node.querySelectorAll('tbody tr')].map(row =>
    [...row.children].map(cell => cell.textContent!)
  );
}

test('without a pinned run there is only the button', () => {
  show(FIRST, null);
  expect([comparison.button.hidden, comparison.node.hidden]).toEqual([false, true]);
  expect(comparison.words.textContent).toBe('');
});

test('the button pins the run and moves the focus to the button that unpins it', () => {
  show(FIRST, null);
  comparison.button.click();
  expect(comparison.pinned).toEqual(FIRST);
  expect(comparison.button.hidden).toBe(true);
  expect(comparison.node.textContent).toContain('The next runs of this cell are compared');
  expect(document.activeElement!.textContent).toBe('Unpin');
  buttons()[0]!.click();
  expect(comparison.pinned).toBeNull();
  expect(comparison.node.hidden).toBe(true);
  expect(document.activeElement).toBe(comparison.button);
});

test('the next run shows what changed, in a few words and by site', () => {
  show(SECOND, FIRST);
  expect(comparison.words.textContent).toBe(' · vs pinned run: +40 calls, p95 × 2');
  expect(rows()).toEqual([
    ['bessel, line 3', '●', '100 → 140 +40', '36 µs → 72 µs × 2', '10 µs']
  ]);
  const figures = [...comparison.node.querySelectorAll('.jaxcb-compare-figure')];
  expect(figures.map(each => each.textContent)).toEqual(['100', '140', '36 µs', '72 µs']); // unbroken
  const both = [...comparison.node.querySelectorAll('td > .jaxcb-compare-figures')];
  expect(both.map(each => each.textContent)).toEqual(['100 → 140', '36 µs → 72 µs']);
  expect(buttons().map(button => button.textContent)).toEqual(['Pin this run instead', 'Unpin']);
  expect(withoutSuppression(document.body)).toEqual([]);
});

test('a status that changed, new sites and lost sites are named', () => {
  const unused = { ...SITE, calls: 0, consequence: 'unused' } as const;
  const added = { ...SITE, function: 'added' };
  show({ ...SECOND, sites: [unused, added] }, { ...FIRST, sites: [SITE, { ...SITE, function: 'lost' }] });
  expect(rows().map(([site, status]) => [site, status])).toEqual([
    ['bessel, line 3', '● → ⚠ unused'],
    ['added, line 3', 'new ●'],
    ['lost, line 3', 'only in the pinned run']
  ]);
});

test('the pinned run is not compared with itself, also when it is shown again', () => {
  show({ ...FIRST }, FIRST);
  expect(comparison.words.textContent).toBe('');
  expect(rows()).toEqual([]);
  expect(comparison.node.textContent).toContain('Pinned.');
});

test('"Pin this run instead" makes it the run to compare with', () => {
  show(SECOND, FIRST);
  buttons()[0]!.click();
  expect(comparison.pinned).toEqual(SECOND);
  expect(comparison.words.textContent).toBe('');
});

test('a run that is pinned while the view gets all its calls stays visible, with the focus', () => {
  show(FIRST, null);
  comparison.button.click();
  comparison.show({ ...FIRST });
  expect(comparison.node.hidden).toBe(false);
  expect(document.activeElement!.textContent).toBe('Unpin');
  comparison.show({ ...FIRST });
  expect(document.activeElement!.textContent).toBe('Unpin');
});

test('the focus stays on its button while the comparison is drawn anew', () => {
  show(SECOND, FIRST);
  buttons()[1]!.focus();
  comparison.show({ ...SECOND });
  expect(document.activeElement!.textContent).toBe('Unpin');
});

const EARLIER = { ...FIRST, id: 'r0', number: 4, sites: [{ ...SITE, calls: 60, p95: null }] };
const BEFORE = { ...FIRST, id: 'r1', number: 7, sites: [{ ...SITE, p95: null }] };
const SHOWN = { ...SECOND, number: 9, sites: [{ ...SECOND.sites[0]!, p95: null }] };

/** Chooses an option of a menu as a user does. */
function choose(menu: HTMLSelectElement, value: string): void {
  menu.value = value;
  menu.dispatchEvent(new Event('change'));
}

test('a site that is only in an earlier run names this run', () => {
  const lost = { ...SITE, function: 'lost' };
  show(SECOND, { ...BEFORE, sites: [SITE, lost] });
  expect(rows()[1]!.slice(0, 2)).toEqual(['lost, line 3', 'only in run [7]']);
});

test('any two runs of the cell can be compared', () => {
  document.body.append(comparison.actions);
  show(SECOND, null);
  const menu = comparison.actions.querySelector('select')!;
  expect(menu.hidden).toBe(true);
  comparison.history = [EARLIER, BEFORE, SHOWN];
  expect([...menu.options].map(each => each.value)).toEqual(['', 'r1', 'r0']);
  choose(menu, 'r1');
  expect(comparison.words.textContent).toBe(' · vs run [7]: +40 calls');
  expect(comparison.pinned).toBe(BEFORE);
  expect(rows()).toEqual([['bessel, line 3', '●', '100 → 140 +40', '10 µs']]);
  const other = comparison.node.querySelector('select')!;
  other.focus();
  choose(other, 'r0');
  expect(document.activeElement).toBe(other);
  expect(rows()).toEqual([['bessel, line 3', '●', '100 → 60 −40', '10 µs → 16.7 µs × 1.7']]);
  expect(comparison.words.textContent).toBe('');
  const titles = [...comparison.node.querySelectorAll('thead th')].map(each => each.textContent);
  expect(titles).toEqual(['Site', 'Status', 'Calls', 'Time per call']); // of saved runs, percentiles are unknown
  const { compared } = comparison;
  comparison.show({ ...SECOND, id: 'r3' });
  expect(comparison.words.textContent).toContain('vs run [7]'); // a later run is compared itself
  comparison.show(SECOND);
  comparison.compared = compared; // as after a reload
  expect(comparison.words.textContent).toBe('')
  choose(other, '');
  expect(comparison.words.textContent).toBe(' · vs run [7]: +40 calls');
  choose(menu, '');
  expect([comparison.node.hidden, comparison.pinned, comparison.button.hidden]).toEqual([
    true, null, false
  ]);
  expect(withoutSuppression(document.body)).toEqual([]);
});

describe('the code', () => {
  const coded = (run: Run, number: number, code: string | null, p95: number | null = 36_000): Run => ({
    ...run, number, code, sites: run.sites.map(site => ({ ...site, p95 }))
  });
  const COLD = coded({ ...FIRST, id: 'c' }, 5, 'a\nb', 90_000);
  const WARM = coded({ ...FIRST, id: 'w' }, 6, 'a\nb');
  const NOW = coded({ ...SECOND, id: 'n' }, 7, 'a\n<i>c</i>');
  const lines = (): string[] =>
    [...comparison.node.querySelectorAll('.jaxcb-compare-code > *')].map(line => line.textContent!);
  const doubt = (): string => comparison.node.querySelector('.jaxcb-compare-doubt')!.textContent!;

  test('that changed is shown as text, and times are those of the run after the first of its code', () => {
    show({ ...NOW, code: null }, COLD);
    comparison.history = [COLD, WARM, NOW];
    expect(lines()).toEqual(['− b', '+ <i>c</i>']);
    expect(comparison.node.querySelector('i')).toBeNull();
    expect(comparison.words.textContent).toBe(' · vs run [5]: +40 calls, p95 × 1');
    expect(doubt()).toBe(
      'Times are compared with those of run [6]: run [5] was the first of its code, which is often slower.'
    );
    comparison.history = [COLD, NOW];
    expect(comparison.words.textContent).toBe(' · vs run [5]: +40 calls, p95 × 0.4');
    expect(doubt()).toBe(''); // both are the first
    comparison.pinned = { ...WARM, number: 0 };
    comparison.history = [COLD, WARM, NOW];
    expect(doubt()).toBe('This run was the first of its code, which is often slower.');
  });

  test('that is equal, unknown or long says so', () => {
    show(NOW, { ...COLD, code: NOW.code });
    expect(comparison.node.textContent).toContain('The code of the cell is the same.');
    show(NOW, { ...COLD, code: null });
    expect(comparison.node.textContent).toContain('is not known, or too long to compare');
    show({ ...NOW, code: 'x'.repeat(5_000) + '\n'.repeat(99) }, COLD);
    expect(lines().length).toBe(41);
    expect(lines().at(-1)).toBe('and 62 more lines');
    expect(Math.max(...lines().map(line => line.length))).toBe(202);
  });

  test('is kept of a pinned run that the kernel no longer knows', () => {
    show(NOW, COLD);
    comparison.history = [WARM, NOW];
    expect(lines()).toEqual(['− b', '+ <i>c</i>']);
    expect(comparison.words.textContent).toBe(' · vs run [5]: +40 calls, p95 × 0.4');
  });
});
