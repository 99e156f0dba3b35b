import type { NotebookPanel } from '@jupyterlab/notebook';
import { expect, test } from 'vitest';
import { ownerOf } from '../../../src/lab/lines/owner.js';

const MODELS = [{}, {}, {}];

function cell(type: string, outputs: object[] = []) {
  const model = { type, outputs: { length: outputs.length, get: (n: number) => outputs[n] } };
  return { node: document.createElement('div'), model };
}

function notebook(...widgets: ReturnType<typeof cell>[]): NotebookPanel {
  const node = document.createElement('div');
  node.append(...widgets.map(each => each.node));
  return { node, content: { widgets } } as unknown as NotebookPanel;
}

function outputIn(parent: Node, model: object | null = null) {
  const node = document.createElement('div');
  parent.appendChild(node);
  return { node, model };
}

const first = notebook(cell('markdown'), cell('code', [MODELS[0]!]));
const second = notebook(cell('code'), cell('code', [MODELS[1]!, MODELS[2]!]));

test('an output belongs to the cell around it', () => {
  const output = outputIn(second.content.widgets[1]!.node, MODELS[0]!);
  expect(ownerOf([first, second], output)).toEqual({ panel: second, cell: 1 });
});

test('an output in a view of its own belongs to the cell with the same model', () => {
  const [model, panels] = [MODELS[2]!, [first, second]];
  expect(ownerOf(panels, outputIn(document.body, model))).toEqual({ panel: second, cell: 1 });
});

test('an output elsewhere belongs to no notebook', () => {
  expect(ownerOf([first, second], outputIn(document.body, {}))).toBeNull();
  expect(ownerOf([first, second], outputIn(document.body))).toBeNull();
  expect(ownerOf([], outputIn(document.body))).toBeNull();
});

test('an output in a notebook but in none of its cells belongs to no cell', () => {
  expect(ownerOf([first, second], outputIn(first.node, MODELS[2]!))).toBeNull();
});
