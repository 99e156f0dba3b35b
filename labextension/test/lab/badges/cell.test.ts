import type { ISharedNotebook } from '@jupyter/ydoc';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import { expect, test, vi } from 'vitest';
import { cellSource } from '../../../src/lab/badges/cell.js';
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

test('a click opens the site in the panel of its notebook', () => {
  const open = vi.fn();
  cellSource(new Hub(), shared(), new Switch(true), open)!.open({ site: 3 });
  expect(open).toHaveBeenCalledWith(notebook, { site: 3 });
});
