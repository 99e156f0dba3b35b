import { beforeEach, expect, test, vi } from 'vitest';
import { Panel } from '../../../src/lab/panel/panel.js';
import { NotebookState } from '../../../src/lab/kernel/service.js';
import { FakeKernel } from '../kernels.js';
import { CALLBACK, message, SITE } from '../made.js';

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

function following(data?: unknown): void {
  notebook.connect(kernel.connection);
  panel.follow(notebook);
  if (data) {
    kernel.says(data);
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

test('without a notebook, a kernel, the extension or callbacks it says what is missing', () => {
  expect(empty()).toBe('No notebook is open.');
  panel.follow(notebook);
  expect(empty()).toBe('This notebook has no kernel.');
  notebook.connect(kernel.connection);
  expect(empty()).toBe(
    'This kernel has not loaded jupyter_jaxcb. Run %load_ext jupyter_jaxcb'
  );
  kernel.says(message({ callbacks: [], sites: [] }));
  expect(empty()).toBe('No callbacks yet. Begin a cell with %%jax_callback pure');
  kernel.says(message());
  expect(empty()).toBe('(hidden)');
});

test('a kernel with another protocol is reported in a line', () => {
  following({ type: 'snapshot', protocol: 2, version: '0.3' });
  expect(empty()).toMatch(/^This kernel has jupyter_jaxcb 0.3, which uses protocol 2;/);
});

test('it lists callbacks, and says whether the kernel runs', () => {
  following(message({ running: true }));
  expect(names()).toEqual(['bessel']);
  expect(panel.node.querySelector('[role=status]')!.textContent).toBe('1 callback · running');
});

test('news keep rows, and with them focus and what is folded', () => {
  following(message());
  const details = panel.node.querySelector('details')!;
  details.open = false;
  details.querySelector('summary')!.focus();
  kernel.says(message({ callbacks: [{ ...CALLBACK, calls: 6 }] }));
  expect(panel.node.querySelector('details')).toBe(details);
  expect(details.open).toBe(false);
  expect(document.activeElement).toBe(details.querySelector('summary'));
  expect(details.textContent).toContain('6 calls');
});

test('a callback that is gone leaves the list', () => {
  following(message());
  kernel.says(message({ callbacks: [], sites: [] }));
  expect(names()).toEqual([]);
});

test('filter and order come with many callbacks', () => {
  following(message());
  const tools = panel.node.querySelector<HTMLElement>('.jaxcb-panel-tools')!;
  expect(tools.hidden).toBe(true);
  kernel.says(MANY);
  expect(tools.hidden).toBe(false);
  const order = panel.node.querySelector('select')!;
  order.value = 'calls';
  order.dispatchEvent(new Event('change'));
  expect(names()).toEqual(['a', 'b', 'c', 'd', 'No longer registered']);
  const filter = panel.node.querySelector('input')!;
  filter.value = 'nowhere';
  filter.dispatchEvent(new Event('input'));
  expect([names(), empty()]).toEqual([[], 'No matching callbacks.']);
});

test('another notebook shows its own callbacks, and the former is ignored', () => {
  following(message());
  panel.follow(new NotebookState());
  kernel.says(message());
  expect(names()).toEqual([]);
  expect(empty()).toBe('This notebook has no kernel.');
});

test('what is folded in one notebook is not folded in another', () => {
  following(message());
  panel.node.querySelector('details')!.open = false;
  const [other, others] = [new NotebookState(), new FakeKernel()];
  other.connect(others.connection);
  others.says(message());
  panel.follow(other);
  expect(panel.node.querySelector('details')!.open).toBe(true);
});

test('a place that is shown is found behind a filter, in focus', () => {
  following(MANY);
  const filter = panel.node.querySelector('input')!;
  filter.value = 'nowhere';
  filter.dispatchEvent(new Event('input'));
  panel.show({ site: 1 });
  const site = document.activeElement!.closest('.jaxcb-callsite')!;
  expect(site.textContent).toContain('other');
  expect(site.classList.contains('jaxcb-flash')).toBe(true);
  expect(site.scrollIntoView).toHaveBeenCalledOnce();
  panel.show({ callback: 2 });
  expect(document.activeElement!.textContent).toMatch(/^b/);
});

test('a place that is gone is no error', () => {
  panel.show({ site: 1 });
  following(message());
  panel.show({ site: 9 });
  panel.show({ callback: 9 });
  expect(document.activeElement).toBe(document.body);
});

test('a disposed panel ignores updates', () => {
  following(message());
  panel.dispose();
  kernel.says(message({ callbacks: [] }));
  expect(names()).toEqual(['bessel']);
});
