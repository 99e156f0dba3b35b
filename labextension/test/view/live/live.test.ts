import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { LiveView } from '../../../src/view/live/live.js';
import type { Store } from '../../../src/view/data/store.js';
import { h } from '../../../src/view/dom/elements.js';
import { NO_LOOK, remember, remembered } from '../../../src/view/remembered.js';
import { SiteList } from '../../../src/view/sites/sites.js';
import { withoutSuppression } from '../keys.js';
import {
  aSite,
  someCalls,
  someFacts,
  someProgress,
  unusedSite
} from '../recordings.js';

const stores: Store[] = [];
const disposed = vi.fn();

vi.mock('../../../src/view/calls/timeline/timeline.js', () => ({
  Timeline: class {
    node = document.createElement('canvas');
    dispose = disposed;
    constructor(store: Store) {
      stores.push(store);
    }
  }
}));

const SITE = aSite({ where: 'line 3', line: 3, column: 4, calls: 41, host_ns: 2e6 });
const CALL = { function: 'f', where: 'line 3', element: 2, thread: 'Thread-1', elapsed_ns: 6.2e9 };
let view: LiveView;

function find(selector: string): HTMLElement {
  return view.node.querySelector<HTMLElement>(selector)!;
}

function openTimeline(): Store {
  const details = find('.jaxcb-live-timeline') as HTMLDetailsElement;
  details.open = true;
  details.dispatchEvent(new Event('toggle'));
  return stores[0]!;
}

function swatches(node: HTMLElement): string[] {
  const found = [...node.querySelectorAll<HTMLElement>('.jaxcb-swatch')];
  return found.map(swatch => swatch.style.getPropertyValue('--jaxcb-own'));
}

beforeEach(() => {
  stores.length = 0;
  disposed.mockReset();
  view = new LiveView();
  document.body.append(view.node);
});

afterEach(() => {
  view.dispose();
  document.body.replaceChildren();
});

describe('LiveView', () => {
  it('shows the progress of the cell', () => {
    view.update(someProgress(), []);
    const bar = find('[role=progressbar]');
    expect(bar.getAttribute('aria-valuenow')).toBe('4');
    expect(bar.getAttribute('aria-valuetext')).toBe(
      '431 of 10,000 calls · 2,310 calls/s · 3.2 s, about 4 s left'
    );
    expect(find('.jaxcb-bar-fill').style.width).toBe('4.3%');
  });

  it('shows no percentage if the expected number of calls is unknown', () => {
    view.update(someProgress(), []);
    view.update(someProgress({ expected: null }), []);
    expect(find('[role=progressbar]').hasAttribute('aria-valuenow')).toBe(false);
    expect(find('.jaxcb-bar-fill').style.width).toBe('');
  });

  it('lists sites and running host calls, and removes calls that have ended', () => {
    view.update(someProgress({ sites: [SITE], running: [CALL, CALL] }), []);
    expect(find('.jaxcb-live-sites').textContent).toContain('bessel · pure · line 3');
    expect(view.node.querySelectorAll('.jaxcb-live-running li')).toHaveLength(2);
    expect(find('.jaxcb-live-running').textContent).toContain('⚠ still running, 6.2 s');
    view.update(someProgress({ sites: [SITE] }), []);
    expect(find('.jaxcb-live-running').hidden).toBe(true);
    expect(view.node.querySelectorAll('.jaxcb-live-running li')).toHaveLength(0);
  });

  it('lists a bounded number of sites', () => {
    view.update(someProgress({ sites: Array(100).fill(SITE) }), []);
    expect(view.node.querySelectorAll('.jaxcb-live-sites li')).toHaveLength(60);
    expect(find('.jaxcb-live-sites').textContent).toContain('and 40 more');
  });

  it('does not change the document if nothing has changed', async () => {
    view.update(someProgress({ sites: [SITE], running: [CALL] }), []);
    const changes = vi.fn();
    const observer = new MutationObserver(changes);
    observer.observe(view.node, { childList: true, characterData: true, subtree: true });
    view.update(someProgress({ sites: [SITE], running: [CALL] }), []);
    expect(observer.takeRecords()).toEqual([]);
    observer.disconnect();
  });

  it('gives sites the same colors as the host trace', () => {
    const log = { function: 'log', flavor: 'io', where: 'line 9', line: 9, column: 0 };
    view.update(someProgress({ sites: [SITE, { ...SITE, ...log }] }), []);
    const facts = someFacts([unusedSite(), aSite(log), aSite({ line: 3, column: 4 })]);
    const [, second, first] = swatches(new SiteList(facts, {}).node);
    expect(swatches(find('.jaxcb-live-sites'))).toEqual([first, second]);
    expect(first).not.toBe(second);
  });

  it('lets the host trace that replaces it open as it was left', () => {
    const cell = h('div', { class: 'jp-Cell' }, view.node);
    document.body.append(cell);
    view.update(someProgress({ elapsed_ns: 1e9 }), []);
    expect(remembered(view.node)).toBeNull(); // of a short cell it stays one line
    view.update(someProgress({ elapsed_ns: 3e9 }), []);
    expect(remembered(view.node)).toMatchObject({ expanded: true, tab: 'Sites' });
    openTimeline();
    expect(remembered(view.node)).toMatchObject({ expanded: true, tab: 'Calls' });
  });

  it('opens its timeline if the calls of the cell were shown before', () => {
    const cell = h('div', { class: 'jp-Cell' }, view.node);
    document.body.append(cell);
    remember(view.node, { ...NO_LOOK, expanded: true, tab: 'Calls' });
    view.update(someProgress(), []);
    expect((find('.jaxcb-live-timeline') as HTMLDetailsElement).open).toBe(true);
  });

  it('stays open if the user opens it before the first update', () => {
    const details = find('.jaxcb-live-timeline') as HTMLDetailsElement;
    details.open = true; // the event comes later
    view.update(someProgress(), []);
    expect(details.open).toBe(true);
  });

  it('lets the host trace open its tab Time again, if that was shown', () => {
    document.body.append(h('div', { class: 'jp-Cell' }, view.node));
    remember(view.node, { ...NO_LOOK, expanded: true, tab: 'Time', profiled: true });
    const details = find('.jaxcb-live-timeline') as HTMLDetailsElement;
    details.dispatchEvent(new Event('toggle'));
    expect(remembered(view.node)).toMatchObject({ tab: 'Time', profiled: true });
    openTimeline();
    details.open = false;
    details.dispatchEvent(new Event('toggle'));
    expect(remembered(view.node)).toMatchObject({ tab: 'Sites' });
  });

  it('leaves a host trace collapsed that the user collapsed', () => {
    document.body.append(h('div', { class: 'jp-Cell' }, view.node));
    remember(view.node, { ...NO_LOOK, tab: 'Calls' });
    view.update(someProgress({ elapsed_ns: 9e9 }), []);
    expect(remembered(view.node)).toMatchObject({ expanded: false });
  });

  it('suppresses JupyterLab shortcuts on every focusable element', () => {
    expect(view.node.querySelectorAll('summary')).toHaveLength(2);
    expect(withoutSuppression(view.node)).toEqual([]);
  });

  it('does not announce every update to screen readers', () => {
    view.update(someProgress({ elapsed_ns: 1e9 }), []);
    view.update(someProgress({ elapsed_ns: 1.1e9, calls: 500 }), []);
    expect(find('[role=status]').textContent).toContain('431 of');
  });

  it('says what is damaged in the progress, until valid progress arrives', () => {
    view.update({ ...someProgress(), rate: 'many' }, []);
    expect(find('.jaxcb-bad').hidden).toBe(false);
    expect(find('.jaxcb-bad').textContent).toBe(
      '✕ the progress is damaged: progress.rate is "many", not a number of at least 0.'
    );
    view.update(someProgress(), []);
    expect(find('.jaxcb-bad').hidden).toBe(true);
  });
});

describe('the timeline of LiveView', () => {
  it('is created with the calls so far when it is expanded', () => {
    view.append({ ...someCalls(3), base_ns: 0 });
    expect(stores).toEqual([]);
    expect(openTimeline().calls.length).toBe(3);
  });

  it('adds a batch of calls at its base time', () => {
    view.append({ ...someCalls(1), base_ns: 5_000 });
    expect(openTimeline().calls.start(0)).toBe(5_100);
  });

  it('is notified of new calls', () => {
    const store = openTimeline();
    const received = vi.fn();
    store.on(received);
    view.append({ ...someCalls(3), base_ns: 0 });
    expect(received.mock.calls).toEqual([['calls']]);
  });

  it('is notified of new sites and threads, not of every update', () => {
    const store = openTimeline();
    const received = vi.fn();
    store.on(received);
    view.update(someProgress({ sites: [SITE] }), ['MainThread']);
    view.update(someProgress({ sites: [SITE] }), ['MainThread']);
    expect(received.mock.calls.filter(([change]) => change === 'labels')).toHaveLength(1);
    expect(store.labels.sites).toEqual(['bessel, line 3']);
    expect(store.labels.siteOfVariant).toEqual([0]);
    expect(store.labels.threads).toEqual(['MainThread']);
  });

  it('reaches to the present', () => {
    const store = openTimeline();
    const received = vi.fn();
    view.update(someProgress({ since_first_ns: 2e9 }), []);
    store.on(received);
    view.update(someProgress({ since_first_ns: 3e9 }), []);
    expect([store.nowNs, received.mock.calls]).toEqual([3e9, [['calls']]]);
  });

  it('has a note on calls that were not sent', () => {
    view.update(someProgress({ not_sent: 1_200 }), []);
    expect(find('.jaxcb-live-timeline').textContent).toContain('1,200 calls are left out of the timeline');
  });

  it('says that callbacks of JAX beside them are not recorded', () => {
    const words = '2 callbacks of JAX not recorded';
    view.update(someProgress({ not_observed: '' }), []);
    expect(view.node.textContent).not.toContain('of JAX');
    view.update(someProgress({ not_observed: words }), []);
    expect(find('.jaxcb-live > .jaxcb-muted:not([hidden])').textContent).toBe(words);
  });

  it('rejects malformed calls', () => {
    view.append({ ...someCalls(3), rows: 4, base_ns: 0 });
    expect(find('.jaxcb-bad').textContent).toContain('4 calls take 72 bytes, not 54');
    expect(openTimeline().calls.length).toBe(0);
  });

  it('is disposed with the view', () => {
    openTimeline();
    view.dispose();
    expect(disposed).toHaveBeenCalledTimes(1);
  });
});
