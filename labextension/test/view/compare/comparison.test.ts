import { beforeEach, expect, test } from 'vitest';

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
const FIRST: Run = { id: 'r1', sites: [SITE] };
const SECOND: Run = { id: 'r2', sites: [{ ...SITE, calls: 140, p95: 72_000, total: null }] };

let comparison: Comparison;

beforeEach(() => {
  comparison = new Comparison();
  document.body.replaceChildren(comparison.button, comparison.words, comparison.node);
});

async function settled(): Promise<void> {
  await new Promise(resolve => setTimeout(resolve));
}

/** Shows a run, and what it is compared with. */
async function show(run: Run, pinned: Run | null): Promise<void> {
  comparison.pinned = pinned;
  comparison.show(() => Promise.resolve(run));
  await settled();
}

function buttons(): HTMLElement[] {
  return [...comparison.node.querySelectorAll('button')].filter(button => !button.hidden);
}

function rows(): string[][] {
  return [...comparison.node.querySelectorAll('tbody tr')].map(row =>
    [...row.children].map(cell => cell.textContent!)
  );
}

test('without a pinned run there is only the button', async () => {
  await show(FIRST, null);
  expect([comparison.button.hidden, comparison.node.hidden]).toEqual([false, true]);
  expect(comparison.words.textContent).toBe('');
});

test('the button pins the run and moves the focus to the button that unpins it', async () => {
  await show(FIRST, null);
  comparison.button.click();
  await settled();
  expect(comparison.pinned).toBe(FIRST);
  expect(comparison.button.hidden).toBe(true);
  expect(comparison.node.textContent).toContain('The next runs of this cell are compared');
  expect(document.activeElement!.textContent).toBe('Unpin');
  buttons()[0]!.click();
  expect(comparison.pinned).toBeNull();
  expect(comparison.node.hidden).toBe(true);
  expect(document.activeElement).toBe(comparison.button);
});

test('the next run shows what changed, in a few words and by site', async () => {
  await show(SECOND, FIRST);
  expect(comparison.words.textContent).toBe(' · vs pinned run: +40 calls, p95 × 2');
  expect(rows()).toEqual([
    ['bessel, line 3', '●', '100 → 140 +40', '36 µs → 72 µs × 2', '1 ms']
  ]);
  const figures = [...comparison.node.querySelectorAll('.jaxcb-compare-figure')];
  expect(figures.map(each => each.textContent)).toEqual(['100', '140', '36 µs', '72 µs']); // unbroken
  const both = [...comparison.node.querySelectorAll('td > .jaxcb-compare-figures')];
  expect(both.map(each => each.textContent)).toEqual(['100 → 140', '36 µs → 72 µs']);
  expect(buttons().map(button => button.textContent)).toEqual(['Pin this run instead', 'Unpin']);
  expect(withoutSuppression(document.body)).toEqual([]);
});

test('a status that changed, new sites and lost sites are named', async () => {
  const unused = { ...SITE, calls: 0, consequence: 'unused' } as const;
  const added = { ...SITE, function: 'added' };
  await show({ id: 'r2', sites: [unused, added] }, { id: 'r1', sites: [SITE, { ...SITE, function: 'lost' }] });
  expect(rows().map(([site, status]) => [site, status])).toEqual([
    ['bessel, line 3', '● → ⚠ unused'],
    ['added, line 3', 'new ●'],
    ['lost, line 3', 'only in the pinned run']
  ]);
});

test('the pinned run is not compared with itself, also when it is shown again', async () => {
  await show({ ...FIRST }, FIRST);
  expect(comparison.words.textContent).toBe('');
  expect(rows()).toEqual([]);
  expect(comparison.node.textContent).toContain('Pinned.');
});

test('"Pin this run instead" makes it the run to compare with', async () => {
  await show(SECOND, FIRST);
  buttons()[0]!.click();
  await settled();
  expect(comparison.pinned).toBe(SECOND);
  expect(comparison.words.textContent).toBe('');
});

test('a run that is pinned while the view gets all its calls stays visible, with the focus', async () => {
  await show(FIRST, null);
  comparison.button.click();
  comparison.show(() => Promise.resolve({ ...FIRST }));
  await settled();
  expect(comparison.node.hidden).toBe(false);
  expect(document.activeElement!.textContent).toBe('Unpin');
  comparison.show(() => Promise.resolve({ ...FIRST }));
  await settled();
  expect(document.activeElement!.textContent).toBe('Unpin');
});

test('the focus stays on its button while the comparison is drawn anew', async () => {
  await show(SECOND, FIRST);
  buttons()[1]!.focus();
  comparison.show(() => Promise.resolve({ ...SECOND }));
  await settled();
  expect(document.activeElement!.textContent).toBe('Unpin');
});

test('figures that come after another run was shown are dropped', async () => {
  let late: (run: Run) => void = () => undefined;
  comparison.pinned = FIRST;
  comparison.show(() => new Promise(resolve => (late = resolve)));
  comparison.show(() => Promise.resolve(SECOND));
  await settled();
  late({ ...SECOND, sites: [] });
  await settled();
  expect(comparison.words.textContent).toBe(' · vs pinned run: +40 calls, p95 × 2');
});

const EARLIER = { ...FIRST, id: 'r0', number: 4, sites: [{ ...SITE, calls: 60, p95: null }] };
const BEFORE = { ...FIRST, id: 'r1', number: 7, sites: [{ ...SITE, p95: null }] };
const SHOWN = { ...SECOND, number: 9, sites: [{ ...SECOND.sites[0]!, p95: null }] };

/** Chooses an option of a menu as a user does. */
function choose(menu: HTMLSelectElement, value: string): void {
  menu.value = value;
  menu.dispatchEvent(new Event('change'));
}

test('a site that is only in an earlier run names this run', async () => {
  const lost = { ...SITE, function: 'lost' };
  await show(SECOND, { ...BEFORE, sites: [SITE, lost] });
  expect(rows()[1]!.slice(0, 2)).toEqual(['lost, line 3', 'only in run [7]']);
});

test('any two runs of the cell can be compared', async () => {
  document.body.append(comparison.actions);
  await show(SECOND, null);
  const menu = comparison.actions.querySelector('select')!;
  expect(menu.hidden).toBe(true);
  comparison.history = [EARLIER, BEFORE, SHOWN];
  expect([...menu.options].map(each => each.value)).toEqual(['', 'r1', 'r0']);
  choose(menu, 'r1');
  await settled();
  expect(comparison.words.textContent).toBe(' · vs run [7]: +40 calls');
  expect(comparison.pinned).toBe(BEFORE);
  expect(rows()).toEqual([['bessel, line 3', '●', '100 → 140 +40', '1 ms']]);
  const other = comparison.node.querySelector('select')!;
  other.focus();
  choose(other, 'r0');
  expect(document.activeElement).toBe(other);
  expect(rows()).toEqual([['bessel, line 3', '●', '100 → 60 −40', '1 ms → 1 ms × 1']]);
  expect(comparison.words.textContent).toBe('');
  const titles = [...comparison.node.querySelectorAll('thead th')].map(each => each.textContent);
  expect(titles).toEqual(['Site', 'Status', 'Calls', 'Time']); // the kernel keeps no percentiles
  choose(other, '');
  expect(comparison.words.textContent).toBe(' · vs run [7]: +40 calls');
  choose(menu, '');
  await settled();
  expect([comparison.node.hidden, comparison.pinned, comparison.button.hidden]).toEqual([
    true, null, false
  ]);
  expect(withoutSuppression(document.body)).toEqual([]);
});
