import type { ISharedNotebook } from '@jupyter/ydoc';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import { expect, test, vi } from 'vitest';
import { cellSource } from '../../../src/lab/badges/cell.js';
import { NO_CELLS } from '../../../src/lab/panel/cells.js';
import { savedSnapshot } from '../../../src/lab/panel/saved.js';
import { aSite, someFacts } from '../../view/recordings.js';
import { Hub } from '../../../src/lab/kernel/service.js';
import { Switch } from '../../../src/lab/switch.js';
import { FakeKernel } from '../kernels.js';
import { message } from '../snapshots.js';

const notebook = {} as ISharedNotebook;

function shared(parts: Record<string, unknown> = {}): CodeEditor.IModel['sharedModel'] {
  const cell = { cell_type: 'code', notebook, getId: () => 'two', ...parts };
  return cell as unknown as CodeEditor.IModel['sharedModel'];
}

test.each([{ cell_type: 'markdown' }, { notebook: null }, { cell_type: undefined }])(
  'anything but a code cell of a notebook (%j) has no badges',
  parts => {
    expect(cellSource(new Hub(), shared(parts), new Switch(true), vi.fn())).toBeNull();
  }
);

test('a cell receives its notes, and every change of the switch', () => {
  const hub = new Hub();
  const shown = new Switch(true);
  const kernel = new FakeKernel();
  const source = cellSource(hub, shared(), shown, vi.fn())!;
  const listener = vi.fn();
  const off = source.on(listener);
  hub.state(notebook).connect(kernel.connection);
  expect(source.notes()).toBeNull();
  kernel.sends(message());
  expect(source.notes()!.lines.length).toBe(1);
  shown.turn(false);
  expect(source.shown()).toBe(false);
  expect(listener).toHaveBeenCalledTimes(3);
  off();
  shown.turn(true);
  kernel.sends(message());
  expect(listener).toHaveBeenCalledTimes(3);
});

test('a click opens the site in the snapshot that its badge is of', () => {
  const open = vi.fn();
  const hub = new Hub();
  const kernel = new FakeKernel();
  const state = hub.state(notebook);
  const source = cellSource(hub, shared(), new Switch(true), open)!;
  source.open({ site: 3 }, false);
  expect(open).not.toHaveBeenCalled();
  state.connect(kernel.connection);
  kernel.sends(message());
  source.open({ site: 0 }, true);
  const { snapshot } = state.received;
  expect(open).toHaveBeenCalledWith(notebook, snapshot, { site: 0 }, true);
});

test('a cell that the kernel does not know has the badges of the saved host traces', () => {
  const site = { ...aSite(), cell: true, cell_line: 7 };
  const facts = { ...someFacts([site]), left_out: 0 };
  const saved = vi.fn(() => savedSnapshot([{ id: 'two', text: site.source, facts }]));
  const hub = new Hub();
  const state = hub.state(notebook);
  state.cells = { ...NO_CELLS, saved };
  const source = cellSource(hub, shared(), new Switch(true), vi.fn())!;
  expect(source.notes()).toMatchObject({ saved: true, lines: [{ line: 7, source: site.source }] });
  source.notes();
  expect(saved).toHaveBeenCalledOnce();
  const kernel = new FakeKernel();
  state.connect(kernel.connection);
  kernel.sends(message());
  expect(source.notes()).toMatchObject({ saved: false });
});
