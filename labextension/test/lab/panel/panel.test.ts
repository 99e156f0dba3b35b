import { beforeEach, expect, test, vi } from 'vitest';
import type { Cells } from '../../../src/lab/panel/cells.js';
import { Panel } from '../../../src/lab/panel/panel.js';
import { savedSnapshot } from '../../../src/lab/panel/saved.js';
import { NotebookState } from '../../../src/lab/kernel/service.js';
import { FakeKernel } from '../kernels.js';
import { CALLBACK, message, SITE, snapshot } from '../snapshots.js';

let panel: Panel;
let kernel: FakeKernel;
let notebook: NotebookState;

beforeEach(() => {
  Element.prototype.scrollIntoView = vi.fn();
  panel = new Panel(vi.fn());
  kernel = new FakeKernel();
  notebook = new NotebookState();
  document.body.replaceChildren(panel.node);
});

function followNotebook(data?: unknown): void {
  notebook.connect(kernel.connection);
  panel.follow(notebook);
  if (data) {
    kernel.sends(data);
  }
}

function empty(): string {
  const node = panel.node.querySelector<HTMLElement>('.jaxcb-panel-empty')!;
  return node.hidden ? '(hidden)' : node.textContent;
}

function names(): string[] {
  return [...panel.node.querySelectorAll('.jaxcb-callback-name')].map(name => name.textContent);
}

const MANY = message({
  callbacks: 'dcba'.split('').map((name, i) => ({ ...CALLBACK, name, calls: i })),
  sites: [SITE, { ...SITE, source: 'other' }]
});

test('shows what is missing: a notebook, a kernel, the extension or callbacks', () => {
  expect(empty()).toBe('No notebook is open.');
  panel.follow(notebook);
  expect(empty()).toBe('This notebook has no kernel.');
  notebook.connect(kernel.connection);
  expect(empty()).toBe(
    'This kernel has not loaded jupyter_jaxcb. Run %load_ext jupyter_jaxcb'
  );
  kernel.sends(message({ callbacks: [], sites: [] }));
  expect(empty()).toBe('No callbacks yet. Begin a cell with %%jax_callback pure');
  kernel.sends(message());
  expect(empty()).toBe('(hidden)');
});

test('reports a kernel with another schema', () => {
  followNotebook({ type: 'snapshot', schema: 2, version: '0.3' });
  expect(empty()).toMatch(/^This kernel has jupyter_jaxcb 0.3, which sent what .* schema 2, not schema 1\./);
});

test('lists callbacks, and shows whether the kernel is running', () => {
  followNotebook(message({ running: true }));
  expect(names()).toEqual(['bessel']);
  expect(panel.node.querySelector('[role=status]')!.textContent).toBe('1 callback · running');
});

test('an update keeps the rows, with their focus and collapsed state', () => {
  followNotebook(message());
  const details = panel.node.querySelector('details')!;
  details.open = false;
  details.querySelector('summary')!.focus();
  kernel.sends(message({ callbacks: [{ ...CALLBACK, calls: 6 }] }));
  expect(panel.node.querySelector('details')).toBe(details);
  expect(details.open).toBe(false);
  expect(document.activeElement).toBe(details.querySelector('summary'));
  expect(details.textContent).toContain('6 calls');
});

test('removes a callback that is no longer in the snapshot', () => {
  followNotebook(message());
  kernel.sends(message({ callbacks: [], sites: [] }));
  expect(names()).toEqual([]);
});

test('offers a filter, and a sort order for many callbacks', () => {
  followNotebook(message());
  const order = panel.node.querySelector('select')!;
  expect(order.hidden).toBe(true);
  kernel.sends(MANY);
  expect(order.hidden).toBe(false);
  order.value = 'calls';
  order.dispatchEvent(new Event('change'));
  expect(names()).toEqual(['a', 'b', 'c', 'd', 'No longer registered']);
  const filter = panel.node.querySelector('input')!;
  filter.value = 'nowhere';
  filter.dispatchEvent(new Event('input'));
  expect([names(), empty()]).toEqual([[], 'No matching callbacks.']);
});

const SAVED: Cells = {
  name: () => 'saved.ipynb',
  labels: () => new Map([['two', '[45]']]),
  saved: () => snapshot({ callbacks: [{ ...CALLBACK, name: 'saved' }] })
};

function texts(selector: string): string[] {
  return [...panel.node.querySelectorAll(selector)].map(node => node.textContent);
}

test('shows saved results until the kernel has loaded the extension, and says why', () => {
  panel.follow(notebook, SAVED);
  expect([names(), texts('[role=status]'), empty()]).toEqual([
    ['saved'],
    ['saved.ipynb · 1 callback · saved results'],
    '(hidden)'
  ]);
  expect(texts('.jaxcb-callsite-where')).toEqual(['[45] line 3']);
  const saved = 'This is what the host traces saved in this notebook show. ';
  expect(texts('.jaxcb-panel-about')).toEqual([`${saved}This notebook has no kernel.`]);
  notebook.connect(kernel.connection);
  expect(texts('.jaxcb-panel-about')[0]).toContain('Run %load_ext jupyter_jaxcb');
  kernel.sends(message());
  expect([names(), texts('[role=status]'), texts('.jaxcb-panel-about')]).toEqual([
    ['bessel'],
    ['saved.ipynb · 1 callback'],
    ['']
  ]);
});

test('follows changes of the cells, once for several of them', () => {
  vi.useFakeTimers();
  const labels = vi.fn(SAVED.labels);
  panel.follow(notebook, { ...SAVED, labels });
  labels.mockReset().mockReturnValue(new Map([['two', '[46]']]));
  panel.refreshSoon();
  panel.refreshSoon();
  vi.runAllTimers();
  expect(texts('.jaxcb-callsite-where')).toEqual(['[46] line 3']);
  expect(labels).toHaveBeenCalledOnce();
  vi.useRealTimers();
});

test('following another notebook ignores updates of the previous one', () => {
  followNotebook(message());
  panel.follow(new NotebookState());
  kernel.sends(message());
  expect(names()).toEqual([]);
  expect(empty()).toBe('This notebook has no kernel.');
});

test('collapsing a callback in one notebook does not collapse it in another', () => {
  followNotebook(message());
  panel.node.querySelector('details')!.open = false;
  const [other, others] = [new NotebookState(), new FakeKernel()];
  other.connect(others.connection);
  others.sends(message());
  panel.follow(other);
  expect(panel.node.querySelector('details')!.open).toBe(true);
});

test('showing a site clears the filter that hides it, and focuses the site', () => {
  followNotebook(MANY);
  const filter = panel.node.querySelector('input')!;
  filter.value = 'nowhere';
  filter.dispatchEvent(new Event('input'));
  panel.show({ site: 1 }, notebook.received.snapshot ?? savedSnapshot([]));
  const site = document.activeElement!.closest('.jaxcb-callsite')!;
  expect(site.textContent).toContain('other');
  expect(site.getAttribute('aria-current')).toBe('true');
  expect(site.scrollIntoView).toHaveBeenCalledOnce();
  panel.show({ callback: 2 }, notebook.received.snapshot ?? savedSnapshot([]));
  expect(document.activeElement!.textContent).toMatch(/^b/);
});

test('showing a site or callback that no longer exists does nothing', () => {
  panel.show({ site: 1 }, notebook.received.snapshot ?? savedSnapshot([]));
  followNotebook(message());
  panel.show({ site: 9 }, notebook.received.snapshot ?? savedSnapshot([]));
  panel.show({ callback: 9 }, notebook.received.snapshot ?? savedSnapshot([]));
  expect(document.activeElement).toBe(document.body);
});

test('a disposed panel ignores updates', () => {
  followNotebook(message());
  panel.dispose();
  kernel.sends(message({ callbacks: [] }));
  expect(names()).toEqual(['bessel']);
});
