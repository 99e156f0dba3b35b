import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { Store } from '../../src/view/data/store.js';
import type { Proposal } from '../../src/view/data/schema.js';
import { TraceView, type Around, type Everything } from '../../src/view/view.js';
import { withoutSuppression } from './keys.js';
import { aProfile } from './profile/profiles.js';
import { aSite, someCalls, someFacts, someMeasured, someMetadata, unusedSite } from './recordings.js';

const stores: Store[] = [];
const figuresAbout: string[] = [];
const disposed = vi.fn();
const unpacked = vi.fn();

// Fakes of the parts; the timeline records the store it is given.
vi.mock('../../src/view/calls/timeline/timeline.js', () => ({
  Timeline: class {
    node = document.createElement('canvas');
    dispose = disposed;
    constructor(store: Store) {
      stores.push(store);
    }
  }
}));
vi.mock('../../src/view/calls/table/table.js', () => ({
  CallTable: class {
    node = document.createElement('table');
    dispose = disposed;
    filters = { node: document.createElement('div') };
    constructor(store: Store) {
      this.node.textContent = store.labels.samples.get(0) ?? '';
    }
  }
}));
vi.mock('../../src/view/calls/distribution/distribution.js', () => ({
  Distribution: class {
    node = document.createElement('div');
    dispose = disposed;
    constructor(_store: Store, _figures: unknown, of: string) {
      figuresAbout.push(of);
    }
  }
}));
vi.mock('../../src/view/data/unpack.js', () => ({ unpack: (saved: unknown) => unpacked(saved) }));

const SAVED = { rows: 2, unit_ns: 100, zlib: 'eJw=', crossings: '' };
const FACTS = someFacts([unusedSite(), aSite({ calls: 3 })]);
const CUT = someMeasured({ id: 'r1', calls: SAVED, calls_not_saved: 1 });
let view: TraceView;

function createView(around?: Around): TraceView {
  view = new TraceView(() => around ?? {});
  document.body.append(view.node);
  return view;
}

function find(selector: string): HTMLElement {
  return view.node.querySelector<HTMLElement>(selector)!;
}

function toggleBody(): void {
  find('.jaxcb-disclosure').click();
}

function callsTab(): HTMLElement {
  return view.node.querySelectorAll<HTMLElement>('[role=tab]')[1]!;
}

/** Waits until resolved promises have been handled. */
async function flushPromises(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) {
    await Promise.resolve();
  }
}

beforeEach(() => {
  stores.length = figuresAbout.length = 0;
  disposed.mockReset();
  unpacked.mockReset().mockImplementation(() => Promise.resolve(someCalls(2)));
});

afterEach(() => {
  view.dispose();
  document.body.replaceChildren();
});

describe('TraceView', () => {
  it('suppresses JupyterLab shortcuts on every focusable element', () => {
    createView().show(FACTS, CUT);
    toggleBody();
    expect(view.node.querySelectorAll('.jaxcb-disclosure, .jaxcb-tab:not([hidden])')).toHaveLength(3);
    expect(withoutSuppression(view.node)).toEqual([]);
  });

  it('starts as one line, without building its body', () => {
    createView().show(FACTS, null);
    expect(find('.jaxcb-disclosure').getAttribute('aria-expanded')).toBe('false');
    expect(find('.jaxcb-disclosure').textContent).toBe('bessel');
    expect(find('.jaxcb-site')).toBeNull();
  });

  it('expands to its sites, and collapses', () => {
    createView().show(FACTS, null);
    toggleBody();
    expect(find('.jaxcb-disclosure').getAttribute('aria-expanded')).toBe('true');
    expect(view.node.querySelectorAll('.jaxcb-site')).toHaveLength(2);
    toggleBody();
    expect(find('.jaxcb-body').hidden).toBe(true);
  });

  it.each([
    [{ schema: 2 }, 'Update jupyter_jaxcb where JupyterLab runs.'],
    [null, 'the recording is null'],
    ['x', 'the recording is "x"']
  ])('shows only a message in place of %j', (facts, message) => {
    createView().show(facts, null);
    expect(view.node.textContent).toContain(message);
    expect(view.node.children).toHaveLength(1);
  });

  it('replaces a recording with a message if the next one is malformed', () => {
    createView().show(FACTS, null);
    view.show({ schema: 2 }, null);
    expect(view.node.textContent).toMatch(/^✕ cannot show this host trace/);
  });

  it('replaces a message with the next valid recording', () => {
    createView().show({ schema: 2 }, null);
    view.show(FACTS, null);
    expect(view.node.textContent).toContain('besselSitesCalls');
    expect(view.node.textContent).not.toContain('schema');
  });

  it('shows what is not damaged, and one sentence on what is', () => {
    createView().show(someFacts([unusedSite({ reason: 7 as never }), aSite()]), { sites: 'no' });
    toggleBody();
    expect(view.node.querySelectorAll('.jaxcb-site')).toHaveLength(2);
    expect(find('.jaxcb-site-reason').textContent).toContain('?');
    const message = find('.jaxcb-message');
    expect(message.textContent).toBe('⚠ This output is damaged: sites[0].reason is 7, not text.');
    view.show(FACTS, null);
    expect(message.isConnected).toBe(false);
  });

  it('notes that times are not saved', () => {
    createView().show(FACTS, undefined);
    toggleBody();
    expect(find('.jaxcb-footer p').textContent).toBe('times are not saved');
  });

  it('has no tabs if there are no calls to show', () => {
    createView().show(FACTS, null);
    toggleBody();
    expect(find('[role=tablist]').hidden).toBe(true);
    expect(find('.jaxcb-site-show')).toBeNull();
  });

  it('has different element ids in two views of one recording', () => {
    createView().show(FACTS, null);
    const other = new TraceView();
    other.show(FACTS, null);
    expect(other.node.querySelector('.jaxcb-body')!.id).not.toBe(find('.jaxcb-body').id);
    other.dispose();
  });

  it('jumps to the line of a site', () => {
    const reveal = vi.fn();
    const sites = FACTS.sites.map((site, n) => ({ ...site, host_ns: 0, cell_id: `c${n}` }));
    createView({ reveal }).show(FACTS, someMetadata(sites));
    toggleBody();
    find('button.jaxcb-site-where').click();
    expect(reveal).toHaveBeenCalledWith(expect.objectContaining({ cell: 'c0', line: 3 }));
  });
});

describe('the footer of TraceView', () => {
  it('names a script with its arguments and the date before the versions', () => {
    const environment = {
      jax: '0.10.2',
      backend: 'cpu',
      script: 'train.py',
      arguments: '--steps 3',
      date: '2026-11-27 09:30 +0100'
    };
    createView().show(FACTS, someMetadata([...FACTS.sites], { environment }));
    toggleBody();
    expect(find('.jaxcb-footer').textContent).toContain(
      'train.py --steps 3 · 2026-11-27 09:30 +0100 · jax 0.10.2 · cpu'
    );
  });

  it('shows missing calls, call order, workers, environment and compilations', () => {
    const sites = FACTS.sites.map(site => ({ ...site, host_ns: 1 }));
    const measured = someMetadata(sites, {
      out_of_order: ['line 4 ran before line 3'],
      by_worker: ['4 calls by 1 worker: worker 1 · pid 7 4; queued 1 ms, ran 1 ms'],
      environment: { backend: 'cpu', jax: '0.10.2' },
      compilations: [{ program: 'jit_f', lower_ns: 12e6, compile_ns: 80e6, start_ns: null }]
    });
    createView().show({ ...FACTS, full: 'the log was full' }, measured);
    toggleBody();
    const words = [...find('.jaxcb-footer').children].map(child => child.textContent);
    expect(words).toEqual([
      '⚠ line 4 ran before line 3',
      '⚠ the log was full',
      '4 calls by 1 worker: worker 1 · pid 7 4; queued 1 ms, ran 1 ms',
      'jax 0.10.2 · cpu',
      '1 compilation'
    ]);
    const details = find('.jaxcb-footer details') as HTMLDetailsElement;
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
    expect(details.querySelector('li')!.textContent).toBe(
      'jit_f: lowered 12 ms, compiled 80 ms'
    );
  });

  it('offers to profile a cell, where something can run it and did not profile it', () => {
    const offered = (around: object, more = {}): HTMLButtonElement | undefined => {
      const view = createView(around);
      view.show(someFacts([aSite()]), someMetadata([aSite()], more));
      view.expand();
      const buttons = view.node.querySelectorAll<HTMLButtonElement>('.jaxcb-footer button');
      return [...buttons].find(each => each.textContent === 'Profile this cell');
    };
    const rerun = vi.fn();
    offered({ rerun })!.click();
    expect(rerun).toHaveBeenCalledExactlyOnceWith('%%jax_profile');
    expect(offered({})).toBeUndefined();
    expect(offered({ rerun }, { profile: aProfile() })).toBeUndefined();
  });

  it("records JAX's own callbacks at a click on the words that they were not recorded", () => {
    const words = '2 callbacks of JAX not recorded; %%jax_record --jax records them';
    const facts = { ...FACTS, headline: [['kept', 'f 5 calls'], ['quiet', words]], not_observed: 2 };
    const rerun = vi.fn();
    createView({ rerun }).show(facts, someMetadata([], { headline: [] }));
    const part = find('.jaxcb-summary [data-jax]');
    expect(part.textContent).toBe(words);
    part.click();
    expect(rerun).toHaveBeenCalledExactlyOnceWith('%%jax_record --jax');
    expect(find('.jaxcb-disclosure').getAttribute('aria-expanded')).toBe('false');
    createView().show(facts, someMetadata([], { headline: [] })); // nothing can run the cell
    expect(find('[data-jax]')).toBeNull();
  });

  it('counts the sites that are not listed', () => {
    createView().show({ ...FACTS, sites: Array(2_001).fill(aSite()) }, null);
    toggleBody();
    expect(find('.jaxcb-warning').textContent).toBe('⚠ 1 more call sites are not listed');
  });

  it('notes that nothing ran', () => {
    createView().show({ ...FACTS, ahead: true }, null);
    toggleBody();
    expect(find('.jaxcb-footer p').textContent).toBe('explained without running');
  });
});

describe('the calls of TraceView', () => {
  it('are unpacked only when their tab is opened', async () => {
    createView().show(FACTS, someMeasured({ calls: SAVED }));
    toggleBody();
    expect(unpacked).not.toHaveBeenCalled();
    callsTab().click();
    expect(unpacked).toHaveBeenCalledWith(SAVED);
    await flushPromises();
    expect(stores[0]!.calls.length).toBe(2);
    expect(find('canvas')).not.toBeNull();
  });

  it('are not unpacked if they were sent separately', async () => {
    createView().show(FACTS, someMeasured(), someCalls(5));
    toggleBody();
    callsTab().click();
    await flushPromises();
    expect(stores[0]!.calls.length).toBe(5);
    expect(unpacked).not.toHaveBeenCalled();
  });

  it('are replaced by a message if they cannot be unpacked, and the sites stay', async () => {
    unpacked.mockImplementation(() => Promise.reject(new Error('bad base64.')));
    createView().show(FACTS, someMeasured({ calls: SAVED }));
    toggleBody();
    callsTab().click();
    await flushPromises();
    expect(find('.jaxcb-calls').textContent).toBe('✕ cannot show the calls: bad base64.');
    expect(view.node.querySelectorAll('.jaxcb-site')).toHaveLength(2);
  });

  it('are shown without their crossings if only these cannot be unpacked', async () => {
    const crossingsProblem = 'The saved crossings are not valid base64.';
    unpacked.mockImplementation(async () => ({ ...someCalls(2), crossingsProblem }));
    createView().show(FACTS, someMeasured({ calls: SAVED }));
    toggleBody();
    callsTab().click();
    await flushPromises();
    expect(stores[0]!.calls.length).toBe(2);
    expect(find('.jaxcb-calls .jaxcb-warning').textContent).toBe(
      '⚠ cannot show crossings: The saved crossings are not valid base64.'
    );
  });

  it.each([
    [{ ...someCalls(2), rows: 3 }, '3 calls take 54 bytes, not 36'],
    [{ ...someCalls(2), rows: 1.5 }, 'invalid number of rows'],
    [{ ...someCalls(2), unit_ns: NaN }, 'time unit']
  ])('are replaced by a message if they are malformed (%#)', async (raw, message) => {
    createView().show(FACTS, null, raw);
    toggleBody();
    callsTab().click();
    await flushPromises();
    expect(find('.jaxcb-calls').textContent).toContain(message);
  });

  it('are filtered by site with the button of the site', async () => {
    createView().show(FACTS, null, someCalls(5));
    toggleBody();
    find('.jaxcb-site-show').click();
    await flushPromises();
    expect(stores[0]!.filter.site).toBe(1);
    expect(callsTab().getAttribute('aria-selected')).toBe('true');
    expect(document.activeElement).toBe(callsTab());
  });

  it('are shown with the first one selected that returned NaN or infinity', async () => {
    const site = aSite({ calls: 5, not_finite_rows: [3, 2], consequence: 'not_finite' });
    createView().show(someFacts([site]), someMetadata([site]), someCalls(5));
    toggleBody();
    find('.jaxcb-site-note .jaxcb-link').click();
    await flushPromises();
    expect(stores[0]!.selected).toBe(3);
    expect(callsTab().getAttribute('aria-selected')).toBe('true');
  });

  it('have sample values', async () => {
    const sample = ['1 → 2', false] as const;
    const site = aSite({ sample_values: [sample], sample_rows: [0], host_ns: 0 });
    createView().show(someFacts([site]), someMetadata([site]), someCalls(1));
    toggleBody();
    callsTab().click();
    await flushPromises();
    expect(find('table').textContent).toBe('1 → 2');
  });

  it('have a note on how many are saved', async () => {
    createView().show(FACTS, { ...CUT, id: '', calls_not_saved: 999_998 });
    toggleBody();
    callsTab().click();
    await flushPromises();
    expect(find('.jaxcb-calls').textContent).toBe('the first 2 of 1,000,000 calls are saved');
    expect(figuresAbout).toEqual(['2 saved calls']);
  });

  it('are not shown after the view was disposed', async () => {
    createView().show(FACTS, CUT);
    toggleBody();
    callsTab().click();
    view.dispose();
    await flushPromises();
    expect(stores).toEqual([]);
  });

  it('dispose their views with the view', async () => {
    createView().show(FACTS, null, someCalls(5));
    toggleBody();
    callsTab().click();
    await flushPromises();
    view.dispose();
    expect(disposed).toHaveBeenCalledTimes(3);
  });
});

describe('TraceView with a new recording', () => {
  it('stays expanded, with the same tab', async () => {
    createView().show(FACTS, null, someCalls(5));
    toggleBody();
    callsTab().click();
    await flushPromises();
    view.show(FACTS, null, someCalls(7));
    await flushPromises();
    expect(find('.jaxcb-body').hidden).toBe(false);
    expect(callsTab().getAttribute('aria-selected')).toBe('true');
    expect(stores[1]!.calls.length).toBe(7);
  });

  it('keeps the focus on the tab', () => {
    createView().show(FACTS, null, someCalls(5));
    toggleBody();
    callsTab().click();
    callsTab().focus();
    view.show(FACTS, null, someCalls(7));
    expect(document.activeElement).toBe(callsTab());
  });

  it('keeps the focus on the summary line', () => {
    createView().show(FACTS, null, someCalls(5));
    find('.jaxcb-disclosure').focus();
    view.show(FACTS, null, someCalls(7));
    expect(document.activeElement).toBe(find('.jaxcb-disclosure'));
  });

  it('moves the focus to the tab if the focused element is replaced', () => {
    createView().show(FACTS, null, someCalls(5));
    toggleBody();
    find('.jaxcb-site-show').focus();
    view.show(FACTS, null, someCalls(7));
    expect(document.activeElement).toBe(find('[role=tab]'));
  });

  it('keeps the filter for the same sites, and clears it for others', async () => {
    createView().show(FACTS, null, someCalls(5));
    toggleBody();
    find('.jaxcb-site-show').click();
    await flushPromises();
    view.show(FACTS, null, someCalls(7));
    await flushPromises();
    expect(stores[1]!.filter.site).toBe(1);
    view.show(someFacts([aSite({ function: 'other' }), aSite()]), null, someCalls(7));
    await flushPromises();
    expect(stores[2]!.filter.site).toBeNull();
  });

  it('compares with the run that was pinned in an earlier view of the cell', async () => {
    const [before, after] = [aSite({ calls: 2, host_ns: 1000 }), aSite({ calls: 5, host_ns: 3000 })];
    createView({ remembers: true }).show(someFacts([before]), someMetadata([before]));
    toggleBody();
    [...view.node.querySelectorAll('button')].find(each => each.textContent === 'Pin to compare')!.click();
    await flushPromises();
    const { look } = view;
    createView({ remembers: true }).show(someFacts([after]), someMetadata([after]));
    view.restore(look);
    await flushPromises();
    expect(find('.jaxcb-disclosure').textContent).toContain(' · vs pinned run: +3 calls');
    expect(find('.jaxcb-compare').textContent).toContain('500 ns → 600 ns × 1.2');
  });

  it('pins nothing where the next run would not know it', () => {
    createView().show(FACTS, null);
    toggleBody();
    expect(view.node.textContent).toContain('bessel');
    expect(view.node.textContent).not.toContain('Pin');
  });

  it('is restored as an earlier view was left', async () => {
    createView().show(FACTS, null, someCalls(5));
    toggleBody();
    find('.jaxcb-site-show').click();
    await flushPromises();
    stores[0]!.select(3);
    const { look } = view;
    createView().show(FACTS, null, someCalls(7));
    view.restore(look);
    await flushPromises();
    expect(find('.jaxcb-disclosure').getAttribute('aria-expanded')).toBe('true');
    expect(callsTab().getAttribute('aria-selected')).toBe('true');
    expect([stores[1]!.filter.site, stores[1]!.selected]).toEqual([1, 3]);
    expect(view.look).toEqual(look);
  });
});

describe('TraceView with a kernel that has the full recording', () => {
  const all: Everything = {
    facts: FACTS,
    measured: someMeasured({ id: 'r1' }),
    calls: someCalls(3)
  };

  it('requests the full recording once, when it is first expanded', async () => {
    const everything = vi.fn(() => Promise.resolve(null));
    createView({ everything }).show(FACTS, CUT);
    expect(everything).not.toHaveBeenCalled();
    toggleBody();
    await flushPromises();
    toggleBody();
    toggleBody();
    expect(everything.mock.calls).toEqual([['r1']]);
  });

  it('does not request a recording without an id', () => {
    const everything = vi.fn(() => Promise.resolve(null));
    createView({ everything }).show(FACTS, { ...CUT, id: '' });
    toggleBody();
    expect(everything).not.toHaveBeenCalled();
  });

  it('shows the full recording and keeps tab, filter, selection and focus', async () => {
    let reply: (all: Everything) => void = () => undefined;
    const everything = () => new Promise<Everything>(resolve => (reply = resolve));
    createView({ everything }).show(FACTS, CUT);
    toggleBody();
    find('.jaxcb-site-show').click();
    await flushPromises();
    stores[0]!.select(1);
    reply(all);
    await flushPromises();
    expect(stores[1]!.calls.length).toBe(3);
    expect([stores[1]!.filter.site, stores[1]!.selected]).toEqual([1, 1]);
    expect(find('.jaxcb-calls').textContent).toBe('');
    expect(document.activeElement).toBe(callsTab());
  });

  const key = { function: 'bessel', flavor: 'pure', where: 'line 4', source: 'return bessel(1, x)' };
  const run = (id: string, number: number, ns: number) => ({
    id, number, code: null, sites: [[0, 'unused', 0, 0, 0], [0, 'kept', 3, ns, 0]]
  });
  const RUNS = { sites: [key], codes: [], runs: [run('q0', 3, 9e6), run('r0', 4, 3e6), run('r1', 7, 12e6)] };
  const OWN = { ...CUT, sites: [{ cell_line: 3 }, { cell_line: 4, host_ns: 12e6 }] };

  it.each([
    ['with the recording', { ...all, measured: OWN }],
    ['without the recording', { facts: null, measured: null, calls: null }]
  ])('shows how times went if the runs of its cell come %s', async (_, reply) => {
    const everything = () => Promise.resolve({ ...reply, runs: RUNS });
    createView({ everything, remembers: true }).show(FACTS, OWN);
    toggleBody();
    await flushPromises();
    expect(find('.jaxcb-trend-line').getAttribute('aria-label')).toBe(
      'time per call in the last 2 runs: 1 ms, 4 ms'
    );
    expect(find('.jaxcb-trend-word').textContent).toBe('4 × slower');
    const menu = find('.jaxcb-compare-menu select') as HTMLSelectElement;
    expect([...menu.options].map(each => each.text)).toEqual([
      'Compare with…', '[4] 3 calls · 3 ms', '[3] 3 calls · 9 ms'
    ]);
    view.show(FACTS, { ...OWN, id: '' });
    expect(view.node.querySelector('.jaxcb-trend')).toBeNull();
  });

  it('shows the recording also if the runs of its cell are malformed', async () => {
    createView({ everything: () => Promise.resolve({ ...all, runs: { runs: 3 } }) }).show(FACTS, CUT);
    toggleBody();
    callsTab().click();
    await flushPromises();
    expect(stores.at(-1)!.calls.length).toBe(3);
  });

  it('keeps what is under a pressed pointer until its click', async () => {
    let reply: (all: Everything) => void = () => undefined;
    const everything = () => new Promise<Everything>(resolve => (reply = resolve));
    createView({ everything }).show(FACTS, CUT);
    toggleBody();
    const pressed = find('.jaxcb-site-show');
    pressed.dispatchEvent(new MouseEvent('pointerdown', { bubbles: true }));
    reply(all);
    await flushPromises();
    expect(pressed.isConnected).toBe(true);
    pressed.dispatchEvent(new MouseEvent('pointerup', { bubbles: true }));
    pressed.click();
    await vi.waitFor(() => expect(pressed.isConnected).toBe(false));
    expect(callsTab().getAttribute('aria-selected')).toBe('true');
    expect(stores[1]!.filter.site).toBe(1);
  });

  it.each([
    ['nothing', () => Promise.resolve(null)],
    ['an error', () => Promise.reject(new Error('gone'))],
    ['garbage', () => Promise.resolve({ facts: 3, measured: 3, calls: someCalls(1) })]
  ])('shows the saved calls if the reply is %s', async (_, everything) => {
    createView({ everything }).show(FACTS, CUT);
    toggleBody();
    callsTab().click();
    await flushPromises();
    expect(find('.jaxcb-calls').textContent).toBe('the first 2 of 3 calls are saved');
  });

  it('ignores the reply for a recording that is no longer shown', async () => {
    let reply: (all: Everything) => void = () => undefined;
    const everything = () => new Promise<Everything>(resolve => (reply = resolve));
    createView({ everything }).show(FACTS, CUT);
    toggleBody();
    view.show(someFacts([], { headline: [] }), null);
    reply(all);
    await flushPromises();
    expect(find('.jaxcb-summary').textContent).toBe('no callbacks');
  });
});

describe('TraceView of a profiled cell', () => {
  const NO_SITES = someFacts([], { headline: [] });
  const PROFILED = someMeasured({ profile: aProfile() });

  function tabNames(): string[] {
    const shown = [...view.node.querySelectorAll<HTMLElement>('[role=tab]')].filter(tab => !tab.hidden);
    return shown.map(tab => tab.textContent);
  }

  function selected(): string {
    return find('[role=tab][aria-selected=true]').textContent;
  }

  it('starts expanded, with the tab Time', () => {
    createView().show(FACTS, PROFILED, someCalls(5));
    expect(find('.jaxcb-disclosure').getAttribute('aria-expanded')).toBe('true');
    expect(tabNames()).toEqual(['Sites 2', 'Calls 3', 'Time 1 s']);
    expect(selected()).toBe('Time 1 s');
    expect(find('.jaxcb-profile').closest('[role=tabpanel]')!.hasAttribute('hidden')).toBe(false);
  });

  it('has the button of a proposal after the same sentence in tab Time, and only there', () => {
    const apply = vi.fn(async (..._: unknown[]) => false);
    const [advice] = aProfile().advice as [string];
    const queued: Proposal = ['queued=True', advice, []];
    const site = aSite({ proposals: [['other=True', 'another sentence', []], queued] });
    createView({ apply }).show(someFacts([site]), someMetadata([site], { profile: aProfile() }));
    const buttons = view.node.querySelectorAll<HTMLElement>('.jaxcb-profile-advice button');
    expect(buttons).toHaveLength(1);
    buttons[0]!.click();
    expect(apply.mock.calls[0]![1]).toEqual(queued);
  });

  it('has no tab Time without a profile', () => {
    createView().show(FACTS, null, someCalls(5));
    toggleBody();
    expect(tabNames()).toEqual(['Sites 2', 'Calls 3']);
    expect(find('.jaxcb-profile')).toBeNull();
  });

  it('has tabs for its sites and its time if no calls are saved', () => {
    createView().show(FACTS, PROFILED);
    expect(tabNames()).toEqual(['Sites 2', 'Time 1 s']);
    expect(find('[role=tablist]').hidden).toBe(false);
  });

  it('shows only its time if the program has no callbacks', () => {
    createView().show(NO_SITES, PROFILED);
    expect(find('.jaxcb-summary').textContent).toBe(aProfile().headline);
    expect(find('[role=tablist]').hidden).toBe(true);
    const panels = [...find('.jaxcb-tabs').children].filter(child => !(child as HTMLElement).hidden);
    expect(panels).toHaveLength(1);
    expect(panels[0]!.querySelector('.jaxcb-profile')).not.toBeNull();
  });

  it('shows the facts without a tab Time if the profile is malformed', () => {
    createView().show(FACTS, someMeasured({ profile: { ...aProfile(), kinds: [] } }));
    toggleBody();
    expect(tabNames()).toEqual(['Sites 2']);
    expect(find('.jaxcb-message').textContent).toContain('measured.profile');
  });

  it('keeps the tab and the expansion that the user chose', () => {
    createView().show(FACTS, PROFILED, someCalls(5));
    find('[role=tab]').click();
    view.show(FACTS, PROFILED, someCalls(7));
    expect(selected()).toBe('Sites 2');
    toggleBody();
    view.show(FACTS, PROFILED, someCalls(7));
    expect(find('.jaxcb-body').hidden).toBe(true);
  });

  it('is restored as the user left the profile of an earlier run', () => {
    createView().show(FACTS, PROFILED, someCalls(5));
    find('[role=tab]').click();
    toggleBody();
    const { look } = view;
    createView().show(FACTS, PROFILED, someCalls(7));
    view.restore(look);
    expect(find('.jaxcb-body').hidden).toBe(true);
    toggleBody();
    expect(selected()).toBe('Sites 2');
  });

  it('is restored before it is shown', () => {
    createView().show(FACTS, PROFILED, someCalls(5));
    toggleBody();
    const { look } = view;
    createView().restore(look);
    view.show(FACTS, PROFILED, someCalls(7));
    expect(find('.jaxcb-body').hidden).toBe(true);
  });

  it('shows its time after a run of the cell without a profile, however that was left', () => {
    createView().show(FACTS, null, someCalls(5));
    const { look } = view;
    createView().show(FACTS, PROFILED, someCalls(7));
    view.restore(look);
    expect(find('.jaxcb-body').hidden).toBe(false);
    expect(selected()).toBe('Time 1 s');
  });

  it('shows its sites if the next run has no profile', () => {
    createView().show(FACTS, PROFILED, someCalls(5));
    const { look } = view;
    createView().show(FACTS, null, someCalls(7));
    view.restore(look);
    expect(selected()).toBe('Sites 2');
    view.show(NO_SITES, PROFILED);
    expect(find('[role=tablist]').hidden).toBe(true);
    view.show(FACTS, null, someCalls(7));
    expect(tabNames()).toEqual(['Sites 2', 'Calls 3']);
    expect(find('.jaxcb-profile')).toBeNull();
  });

  it('requests the full recording when sites or calls are shown', async () => {
    const everything = vi.fn(() => Promise.resolve(null));
    createView({ everything }).show(FACTS, { ...CUT, profile: aProfile() });
    await flushPromises();
    expect(everything).not.toHaveBeenCalled();
    callsTab().click();
    find('[role=tab]').click();
    expect(everything.mock.calls).toEqual([['r1']]);
  });

  it('compares with a pinned run', async () => {
    createView({ remembers: true }).show(FACTS, PROFILED, someCalls(5));
    [...view.node.querySelectorAll('button')].find(each => each.textContent === 'Pin to compare')!.click();
    await flushPromises();
    const { look } = view;
    createView({ remembers: true }).show(FACTS, PROFILED, someCalls(5));
    view.restore(look);
    await flushPromises();
    expect(find('.jaxcb-summary').textContent).toContain(' · vs pinned run: ');
    expect(selected()).toBe('Time 1 s');
  });

  it('moves the focus to the tab if the focused element is replaced', () => {
    createView().show(FACTS, PROFILED, someCalls(5));
    find('.jaxcb-profile button').focus();
    view.show(FACTS, PROFILED, someCalls(7));
    expect(document.activeElement!.textContent).toBe('Time 1 s');
  });
});

describe('a problem in the headline', () => {
  it('shows and marks the row of its site, and does not close the view', () => {
    Element.prototype.scrollIntoView = vi.fn();
    const headline = [
      ['warning', `⚠ ${unusedSite().function}: never called (unused)`],
      ['kept', 'bessel 3 calls']
    ] as const;
    createView().show(someFacts([aSite({ calls: 3 }), unusedSite()], { headline }), CUT);
    for (let time = 0; time < 2; time++) {
      find('.jaxcb-summary-part').click();
      expect(find('.jaxcb-body').hidden).toBe(false);
      expect(document.activeElement).toBe(find('.jaxcb-site[aria-current]'));
      expect(find('.jaxcb-site[aria-current]').textContent).toContain('unused');
    }
    view.node.querySelectorAll<HTMLElement>('.jaxcb-summary-part')[1]!.click();
    expect(find('.jaxcb-body').hidden).toBe(true);
  });
});
