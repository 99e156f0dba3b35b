import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { Widget as LuminoWidget } from '@lumino/widgets';
import { beforeAll, expect, test, vi } from 'vitest';
import type { Output } from '../../src/lab/around.js';
import type { Around } from '../../src/view/view.js';
import { h } from '../../src/view/dom/elements.js';
import { NO_LOOK, type Look } from '../../src/view/remembered.js';
import { MIME_TYPE } from '../../src/view/data/schema.js';

const LOOK: Look = { ...NO_LOOK, expanded: true, tab: 'Calls' };
const views: {
  around: () => Around;
  show: ReturnType<typeof vi.fn>;
  restore: ReturnType<typeof vi.fn>;
  dispose: () => void;
  expand: ReturnType<typeof vi.fn>;
}[] = [];

vi.mock('../../src/view/view.js', () => ({
  TraceView: class {
    readonly node = h('div', { class: 'jaxcb-view' });
    readonly look = LOOK;
    readonly show = vi.fn();
    readonly restore = vi.fn();
    readonly dispose = vi.fn();
    readonly expand = vi.fn();

    constructor(readonly around: () => Around) {
      views.push(this);
    }
  }
}));

let Widget: (typeof import('@lumino/widgets'))['Widget'];
let extension: IRenderMime.IExtension;
let surround: (typeof import('../../src/lab/around.js'))['surround'];

beforeAll(async () => {
  vi.stubGlobal('DragEvent', class extends MouseEvent {}); // Lumino needs it, jsdom lacks it
  ({ Widget } = await import('@lumino/widgets'));
  extension = (await import('../../src/lab/mime.js')).default[0] as IRenderMime.IExtension;
  ({ surround } = await import('../../src/lab/around.js'));
});

function rendered() {
  const options = {} as IRenderMime.IRendererOptions;
  const renderer = extension.rendererFactory.createRenderer(options);
  return { renderer, view: views.at(-1)! };
}

/** Services of the plugin, and what gives them to an output. */
function services() {
  const everything = vi.fn(async () => null);
  const given = { cell: vi.fn(() => 'a.ipynb 1'), reveal: vi.fn(), openTab: vi.fn(), apply: vi.fn(async () => false), rerun: vi.fn(), save: vi.fn(), everything };
  return { ...given, of: vi.fn((_: Output) => given) };
}

test('the renderer reads facts from the data and measurements from the metadata', async () => {
  const { renderer, view } = rendered();
  const model = { data: { [MIME_TYPE]: 1 }, metadata: { [MIME_TYPE]: 2, other: 3 } };
  await renderer.renderModel(model as unknown as IRenderMime.IMimeModel);
  expect(view.show).toHaveBeenCalledWith(1, 2);
});

test('the renderer precedes the widget of the same output, and is safe in untrusted notebooks', () => {
  expect(extension.rank).toBeLessThan(0);
  expect(extension.rendererFactory).toMatchObject({ safe: true, mimeTypes: [MIME_TYPE] });
});

test('the renderer passes its output to services of the plugin, and works without them', async () => {
  const { renderer, view } = rendered();
  const target = { cell: null, line: 1, source: '', elsewhere: false };
  expect(view.around()).toEqual({});
  const given = services();
  surround(given.of);
  const model = { data: {}, metadata: {} } as unknown as IRenderMime.IMimeModel;
  await renderer.renderModel(model);
  expect(view.around().remembers).toBe(true);
  view.around().reveal!(target);
  await view.around().everything!('r');
  expect(given.of).toHaveBeenCalledWith({ node: renderer.node, model });
  expect(given.reveal).toHaveBeenCalledWith(target);
  expect(given.everything).toHaveBeenCalledWith('r');
});

test('the recording opens in a tab, expanded, with the links of its output', async () => {
  const { of, openTab } = services();
  surround(of);
  const { renderer, view } = rendered();
  const model = { data: { [MIME_TYPE]: 1 }, metadata: { [MIME_TYPE]: 2 } };
  await renderer.renderModel(model as unknown as IRenderMime.IMimeModel);
  view.around().openTab!();
  expect(of).toHaveBeenLastCalledWith({ node: renderer.node, model });
  const copy = views.at(-1)!;
  expect(copy.show).toHaveBeenCalledWith(1, 2);
  expect(copy.expand).toHaveBeenCalledOnce();
  const [widget] = openTab.mock.calls[0]!;
  const { openTab: again, remembers } = copy.around();
  expect([again, remembers]).toEqual([undefined, false]);
  expect(of).toHaveBeenLastCalledWith({ node: widget.node, model }); // found by its model
  Widget.attach(widget, document.body);
  widget.dispose();
  expect(copy.restore).not.toHaveBeenCalled();
});

test('the view of a cell that runs again is restored as the last one was left', () => {
  const cell = document.body.appendChild(h('div', { class: 'jp-Cell' }));
  const first = rendered();
  Widget.attach(first.renderer as LuminoWidget, cell);
  expect(first.view.restore).not.toHaveBeenCalled();
  first.renderer.dispose();
  const second = rendered();
  Widget.attach(second.renderer as LuminoWidget, cell);
  expect(second.view.restore).toHaveBeenCalledExactlyOnceWith(LOOK);
});

test('disposing the output disposes the view, once', () => {
  const { renderer, view } = rendered();
  renderer.dispose();
  renderer.dispose();
  expect(view.dispose).toHaveBeenCalledOnce();
});

test('when the page is left, an open view is handed over to the next one', () => {
  surround(services().of);
  const cell = document.body.appendChild(h('div', { class: 'jp-Cell' }));
  const first = rendered();
  Widget.attach(first.renderer as LuminoWidget, cell);
  window.dispatchEvent(new Event('pagehide'));
  const other = document.body.appendChild(h('div', { class: 'jp-Cell' })); // of the next page
  const second = rendered();
  Widget.attach(second.renderer as LuminoWidget, other);
  const [look] = second.view.restore.mock.calls[0]!;
  expect(look).toMatchObject({ expanded: LOOK.expanded, tab: LOOK.tab, pinned: null });
});
