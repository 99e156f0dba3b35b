import { afterEach, describe, expect, it, vi } from 'vitest';

import { h } from '../../../src/view/dom/elements.js';
import { SiteList } from '../../../src/view/sites/sites.js';
import type { SiteActions } from '../../../src/view/sites/row.js';
import { meaning } from '../../../src/view/dom/term.js';
import type { Facts, Proposal, Site } from '../../../src/view/data/schema.js';
import { aSite, aVariant, BATCHED, someFacts, unusedSite } from '../recordings.js';

const BATCH: Proposal = ['vmap_method="expand_dims"', 'pass the whole batch', ['ordered']];

function list(facts: Facts, actions: SiteActions = {}) {
  const sites = new SiteList(facts, actions);
  document.body.append(sites.node);
  return sites;
}

function nodeOf(site: Partial<Site>, actions?: SiteActions): HTMLElement {
  const { node } = list(someFacts([aSite(site)]), actions);
  unfold(node);
  return node;
}

function unfold(node: HTMLElement): void {
  node
    .querySelectorAll<HTMLElement>('.jaxcb-site-fold[aria-expanded=false]')
    .forEach(fold => fold.click());
}

function text(node: HTMLElement, selector: string): string | null {
  return node.querySelector(selector)?.textContent ?? null;
}

afterEach(() => document.body.replaceChildren());

describe('a row of SiteList', () => {
  it('shows the first errors and notes, and the others when asked', () => {
    const site = aSite({ errors: Array(100).fill('E: no'), notes: Array(9).fill('a note') });
    const { node } = new SiteList(someFacts([site]), {});
    expect(node.querySelectorAll('.jaxcb-site-error')).toHaveLength(8);
    const more = [...node.querySelectorAll('details')].slice(0, 2);
    expect(more.map(each => each.textContent)).toEqual(['92 more errors', '1 more note']);
    more[0]!.open = true;
    more[0]!.dispatchEvent(new Event('toggle'));
    expect(node.querySelectorAll('.jaxcb-site-error')).toHaveLength(100);
  });

  it('shows the location, source, function, flavor and status', () => {
    const node = nodeOf({});
    expect(text(node, '.jaxcb-site-where')).toBe('line 4');
    expect(text(node, '.jaxcb-site-source')).toBe('return bessel(1, x)');
    expect(text(node, '.jaxcb-site-flavor')).toBe('bessel · pure');
    expect(text(node, '.jaxcb-status.jaxcb-tone-kept')).toBe('●');
  });

  it('is listed in program order', () => {
    const { node } = list(someFacts([unusedSite(), aSite()]));
    const places = [...node.querySelectorAll('.jaxcb-site-where')].map(one => one.textContent);
    expect(places).toEqual(['line 3', 'line 4']);
  });

  it.each([
    [{ calls: 5, expected: 5 }, '5 calls'],
    [{ calls: 5, expected: null }, '5 calls'],
    [{ calls: 3, expected: 5 }, '3 of 5 expected'],
    [{ calls: 0, expected: 0, elided: 2 }, '0 calls2 elided']
  ] as [Partial<Site>, string][])('counts calls (%#)', (site, words) => {
    expect(text(nodeOf(site), '.jaxcb-site-calls')).toBe(words);
  });

  it.each([
    [null, null, 'depends on data'],
    [5, 5, '5 calls'],
    [3, 5, '3 of 5 calls']
  ])('shows that one run makes %j of %j calls', (expected, written, words) => {
    const { node } = list(someFacts([aSite({ expected, written })], { ahead: true }));
    expect(text(node, '.jaxcb-site-calls')).toBe(words);
  });

  it('shows the time and its share of the total', () => {
    const times = [750_000, 250_000];
    const { node } = list(someFacts(times.map(host_ns => aSite({ host_ns }))));
    expect(text(node, '.jaxcb-site-time')).toBe('750 µs 75 %');
    expect(node.querySelector<HTMLElement>('.jaxcb-share > span')?.style.width).toBe('75%');
  });

  it('omits times that were not saved', () => {
    expect(text(nodeOf({}), '.jaxcb-site-time')).toBe('');
  });

  it('shows markup in the source as plain text', () => {
    const node = nodeOf({ source: '<img src=x onerror=alert(1)>' });
    expect(node.querySelector('img')).toBeNull();
    expect(text(node, '.jaxcb-site-source')).toBe('<img src=x onerror=alert(1)>');
  });
});

describe('the links of SiteList', () => {
  const TARGET = { cell: null, line: 4, source: 'return bessel(1, x)', elsewhere: false };

  it('jump to the line of the site', () => {
    const reveal = vi.fn();
    const node = nodeOf({ cell_id: 'c1' }, { reveal });
    node.querySelector<HTMLElement>('button.jaxcb-site-where')!.click();
    expect(reveal).toHaveBeenCalledWith({ ...TARGET, cell: 'c1' });
  });

  it('jump to the line even if the id of the cell is unknown', () => {
    const reveal = vi.fn();
    nodeOf({}, { reveal }).querySelector<HTMLElement>('.jaxcb-link')!.click();
    expect(reveal).toHaveBeenCalledWith(TARGET);
  });

  it('pass on whether the site is in another cell, not whether its caller is', () => {
    const reveal = vi.fn();
    for (const where of ['line 4, another cell', 'line 4:3, another cell (from f, line 2)']) {
      nodeOf({ where }, { reveal }).querySelector<HTMLElement>('.jaxcb-link')!.click();
      expect(reveal).toHaveBeenLastCalledWith({ ...TARGET, elsewhere: true });
    }
    const where = 'line 4 (from f, line 2, another cell)';
    nodeOf({ where }, { reveal }).querySelector<HTMLElement>('.jaxcb-link')!.click();
    expect(reveal).toHaveBeenLastCalledWith(TARGET);
  });

  it('name the number of another cell, if it is known', () => {
    const where = 'line 4, another cell';
    const node = nodeOf({ where, numbered: '[21] line 4' }, { reveal: vi.fn() });
    expect(text(node, '.jaxcb-site-where')).toBe('[21] line 4');
    expect(text(nodeOf({ where }), '.jaxcb-site-where')).toBe(where);
  });

  it('are absent for sites in files, and without a reveal action', () => {
    const inFile = nodeOf({ cell: false }, { reveal: vi.fn() });
    expect(inFile.querySelector('button.jaxcb-link')).toBeNull();
    expect(nodeOf({}).querySelector('button.jaxcb-link')).toBeNull();
  });

  it('filter by a site that has calls', () => {
    const filter = vi.fn();
    const { node } = list(someFacts([unusedSite(), aSite()]), { filter });
    const [button, ...others] = node.querySelectorAll<HTMLElement>('.jaxcb-site-show');
    button!.click();
    expect(filter).toHaveBeenCalledWith(1);
    expect(others).toEqual([]);
  });
});

describe('the details of SiteList', () => {
  const folded = (node: HTMLElement): unknown[] =>
    [...node.querySelectorAll<HTMLElement>('.jaxcb-site-below')].map(below => below.hidden);

  it('are folded for a site without a problem, and a button unfolds them', () => {
    const { node } = list(someFacts([aSite(), unusedSite(), aSite({ notes: ['a note'] })]));
    expect(folded(node)).toEqual([true, false, false]);
    expect(node.querySelector('.jaxcb-site-below')!.childElementCount).toBe(0);
    const fold = node.querySelector<HTMLElement>('.jaxcb-site-fold')!;
    expect(fold.getAttribute('aria-label')).toBe('details of bessel, line 4');
    for (const shown of [true, false]) {
      fold.click();
      expect(folded(node)).toEqual([!shown, false, false]);
      expect(fold.getAttribute('aria-expanded')).toBe(String(shown));
    }
    expect(node.querySelectorAll('.jaxcb-site-below')[0]!.childElementCount).toBe(1);
  });

  it('are unfolded of the first ten sites with something to read, in each order', () => {
    const sites = [...Array.from({ length: 12 }, () => unusedSite()), aSite({ consequence: 'raised' })];
    const { node } = list(someFacts(sites));
    const ten = [...Array(10).fill(false), true, true, true];
    expect(folded(node)).toEqual(ten);
    expect(text(node, '.jaxcb-site')).toContain('raised');
    node.querySelectorAll<HTMLElement>('.jaxcb-site-fold')[1]!.click();
    const order = node.querySelector('select')!;
    order.value = 'program';
    order.dispatchEvent(new Event('change'));
    expect(folded(node)).toEqual([true, ...ten.slice(0, 12)]);
  });

  it('name the first call that returned NaN or infinity for finite arguments', () => {
    const site = aSite({
      consequence: 'not_finite',
      notes: ['2 calls returned NaN or infinity for finite arguments'],
      not_finite_rows: [36, 1, 4, 1],
      first_element: 4,
      sample_values: [['element 4: -1 → nan', false]]
    });
    const select = vi.fn();
    const { node } = new SiteList(someFacts([site]), { select });
    expect(node.textContent).toContain('the first of them is call 37 in the tab Calls, batch element 4 · jump to first');
    expect(node.textContent).toContain('What to do: call the function in Python');
    expect(node.querySelector('details[open] .jaxcb-not-finite')!.textContent).toBe('nan');
    node.querySelector<HTMLElement>('.jaxcb-site-note .jaxcb-link')!.click();
    expect(select).toHaveBeenCalledWith(36);
    const only = new SiteList(someFacts([aSite({ ...site, not_finite_rows: [0, 1], first_element: -1 })]), {});
    expect(only.node.textContent).toContain('it is call 1');
    expect(only.node.querySelector('.jaxcb-site-note .jaxcb-link')).toBeNull();
  });

  it('of a slow vmap that loops are unfolded, with advice', () => {
    const { node } = list(someFacts([aSite({ proposals: [BATCH] }), aSite()]));
    expect(folded(node)).toEqual([false, true]);
    expect(text(node, '.jaxcb-site-advice')).toBe('↳What to do: pass the whole batch');
  });

  it('have a button for each proposal, which passes it on', () => {
    const queued: Proposal = ['queued=True', 'do not wait for it', []];
    const apply = vi.fn(async () => false);
    const site = aSite({ proposals: [BATCH, queued] });
    const { node } = new SiteList(someFacts([site]), { apply });
    node.querySelectorAll<HTMLElement>('.jaxcb-site-advice .jaxcb-link')[1]!.click();
    expect(apply.mock.calls).toEqual([[site, queued]]);
  });

  it('do not offer to write an option again that was written', async () => {
    const sites = [aSite({ proposals: [BATCH] }), aSite({ proposals: [BATCH], line: 9 })];
    const { node } = new SiteList(someFacts(sites), { apply: async () => true });
    const view = h('div', { class: 'jaxcb-view' }, node);
    view.querySelector<HTMLElement>('.jaxcb-site-advice .jaxcb-link')!.click();
    await Promise.resolve();
    await Promise.resolve();
    expect(view.querySelectorAll('.jaxcb-site-advice .jaxcb-link').length).toBe(0);
    expect(view.querySelectorAll('.jaxcb-site-advice')[1]!.textContent).toContain('written into the cell');
  });

  it('of the only site are unfolded if it is batched; the row has the sizes of its vmaps', () => {
    const shapes = [{ ...BATCHED, sizes: '4 × 3' }];
    const one = list(someFacts([aSite({ shapes })])).node;
    expect(folded(one)).toEqual([false]);
    expect(text(one, '.jaxcb-site-flavor')).toBe('bessel · pure · vmap 4 × 3');
    expect(folded(list(someFacts([aSite({ shapes }), aSite({ shapes })])).node)).toEqual([true, true]);
    expect(folded(list(someFacts([aSite()])).node)).toEqual([true]);
  });

  it('show the reason and, separately, the advice', () => {
    const { node } = list(someFacts([unusedSite()]));
    expect(text(node, '.jaxcb-site-reason')).toBe('nothing uses its result');
    expect(text(node, '.jaxcb-site-advice')).toContain('What to do: return or use the result');
  });

  it('show notes, short errors, and the enclosing loops and branches', () => {
    const site = { notes: ['a note'], errors: ['ValueError: no luck'] };
    const node = nodeOf({ ...site, around: ['scan of 5', 'cond'] });
    expect(text(node, '.jaxcb-site-note')).toBe('•a note');
    expect(text(node, '.jaxcb-site-error')).toBe('✕ValueError: no luck');
    expect(text(node, '.jaxcb-site-context')).toBe('in scan of 5 › cond');
  });

  it('collapse a traceback to its last line', () => {
    const error = 'Traceback (most recent call last):\n  File "x"\nValueError: no luck';
    const details = nodeOf({ errors: [error] }).querySelector('details')!;
    expect(details.textContent).toBe('✕ ValueError: no luck');
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
    expect(text(details, 'pre')).toBe(error);
  });

  it('show the number of crossings', () => {
    const node = nodeOf({ calls: 6, crossings: 1 });
    expect(text(node, '.jaxcb-site-context')).toBe('6 calls in 1 crossing');
    const crossing = node.querySelector<HTMLElement>('abbr')!;
    expect([crossing.textContent, crossing.title]).toEqual(['1 crossing', meaning('crossing')]);
  });

  it('say what elided means', () => {
    const elided = nodeOf({ elided: 2 }).querySelector<HTMLElement>('.jaxcb-site-calls abbr')!;
    expect([elided.textContent, elided.title]).toEqual(['2 elided', meaning('elided')]);
    expect(meaning('elided')).toMatch(/^Elided: unused, .* fewer host calls/);
  });

  it('show the vmap diagram', () => {
    expect(nodeOf({ shapes: [BATCHED] }).querySelector('.jaxcb-batching-grid')).not.toBeNull();
  });

  it('collapse the diagrams if there are many sites', () => {
    const { node } = list(someFacts(Array(9).fill(aSite({ shapes: [BATCHED] }))));
    unfold(node);
    expect(node.querySelector('.jaxcb-batching-grid')).toBeNull();
    expect(text(node, 'summary')).toBe('1 call for 4 elements: (4,) → (4,) vmap, expand_dims');
  });

  it('count the calls with each of several shapes', () => {
    const shapes = [aVariant('(2,) → (2,)', { calls: 2 }), aVariant('(3,) → (3,)')];
    const node = nodeOf({ shapes });
    expect(text(node, '.jaxcb-site-variants > summary')).toBe('2 shapes');
    expect(text(node, '.jaxcb-site-variants')).toContain('2 calls:');
  });

  it('show the time of the calls with each of several shapes', () => {
    const one = aVariant('(2,) → (2,)', { arrays: 'float32[2] → float32[2]' });
    const variants_ns = [28.5e9, 2e6, 0];
    const none = { ...one, calls: 0 };
    const node = nodeOf({ shapes: [one, BATCHED, none], variants_ns });
    const lines = [...node.querySelectorAll('.jaxcb-site-variant')].map(each => each.textContent);
    expect(lines).toEqual([
      '1 call · 28.5 s: float32[2] → float32[2]',
      '1 call for 4 elements: (4,) → (4,) vmap, expand_dims · 2 ms',
      '0 calls: float32[2] → float32[2]'
    ]);
  });

  it('show a bounded number of shapes', () => {
    const details = nodeOf({ shapes: Array(60_000).fill(aVariant()) });
    const variants = details.querySelector<HTMLDetailsElement>('.jaxcb-site-variants')!;
    variants.open = true;
    variants.dispatchEvent(new Event('toggle'));
    expect(variants.querySelectorAll('.jaxcb-site-variant')).toHaveLength(24);
    expect(variants.textContent).toContain('and 59976 more shapes');
  });

  it('show shards, devices and gathered bytes', () => {
    const placed = '2 shards (cpu:0, cpu:1), gathers 4.1 kB';
    expect(text(nodeOf({ shapes: [aVariant('', { placed })] }), '.jaxcb-site-context')).toBe(placed);
  });

  it('list the arguments and results of the sampled calls', () => {
    const node = nodeOf({
      consequence: 'raised',
      sample_values: [
        ['element 2: 0.5, 1 → 0.479', false],
        ['shard 3: nothing → ✕ raised', true]
      ]
    });
    const items = [...node.querySelectorAll('.jaxcb-site-sample_values li')];
    expect(items.map(item => item.textContent)).toEqual([
      'element 2: 0.5, 1 → 0.479',
      'shard 3: nothing → ✕ raised'
    ]);
  });
});

it('folds the values of a site without a problem', () => {
  const node = nodeOf({ sample_values: [['0.5 → 1', false]] });
  const values = [...node.querySelectorAll('details')].at(-1)!;
  expect([values.open, values.textContent]).toEqual([false, 'values of one call']);
});

describe('a SiteList of more than ten sites', () => {
  const slow = { host_ns: 9e9, source: 'slow(x)' };
  const sites = Array.from({ length: 200 }, (_, place) =>
    place === 137
      ? unusedSite()
      : aSite({ where: `line ${place}`, host_ns: 5, ...(place === 7 ? slow : {}) })
  );
  const first = (node: Element): string | null => text(node as HTMLElement, '.jaxcb-site-where');
  const order = (node: Element, value: string): void => {
    const select = node.querySelector('select')!;
    select.value = value;
    select.dispatchEvent(new Event('change'));
  };

  it('begins with the problems, and can be in the order of the program or of time', () => {
    const { node } = list(someFacts(sites));
    expect(text(node, '.jaxcb-site .jaxcb-status')).toBe('⚠ unused');
    order(node, 'program');
    expect(first(node)).toBe('line 0');
    order(node, 'time');
    expect(first(node)).toBe('line 7');
  });

  it('can be searched', () => {
    const { node } = list(someFacts(sites));
    const search = node.querySelector<HTMLInputElement>('input[type=search]')!;
    search.value = 'slow line 7';
    search.dispatchEvent(new Event('input'));
    expect(node.querySelectorAll('.jaxcb-site')).toHaveLength(1);
    expect(first(node)).toBe('line 7');
  });

  it('has a button for each problem that lists only the sites with it; again: all', () => {
    const { node } = list(someFacts(sites));
    const chips = [...node.querySelectorAll<HTMLElement>('.jaxcb-sites-chip')];
    expect(chips.map(chip => chip.textContent)).toEqual(['1 unused']);
    chips[0]!.click();
    expect(node.querySelectorAll('.jaxcb-site')).toHaveLength(1);
    expect(chips[0]!.getAttribute('aria-pressed')).toBe('true');
    chips[0]!.click();
    expect(node.querySelectorAll('.jaxcb-site')).toHaveLength(100);
  });

  it('is absent for ten sites, which are in the order of the program', () => {
    const { node } = list(someFacts([...sites.slice(0, 9), unusedSite()]));
    expect(node.querySelector('.jaxcb-sites-tools')).toBeNull();
    expect(first(node)).toBe('line 0');
  });
});

describe('a long SiteList', () => {
  it('starts with 100 sites, and a button shows the others and focuses the first of them', () => {
    const sites = Array.from({ length: 150 }, (_, place) => aSite({ where: `line ${place}` }));
    const { node } = list(someFacts(sites));
    const more = node.querySelector<HTMLElement>('.jaxcb-sites-more')!;
    expect(node.querySelectorAll('.jaxcb-site')).toHaveLength(100);
    expect(more.textContent).toBe('show 50 more of 50 sites');
    more.click();
    expect(node.querySelectorAll('.jaxcb-site')).toHaveLength(150);
    expect(more.hidden).toBe(true);
    expect(document.activeElement).toBe(node.querySelectorAll('.jaxcb-site')[100]);
    expect(document.activeElement?.textContent).toContain('line 100');
  });
});
