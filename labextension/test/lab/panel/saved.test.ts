import type { INotebookModel, NotebookPanel } from '@jupyterlab/notebook';
import { expect, test } from 'vitest';
import { cellsOf } from '../../../src/lab/panel/cells.js';
import { savedSnapshot, savedTraces, type SavedTrace } from '../../../src/lab/panel/saved.js';
import { MIME_TYPE, type Site } from '../../../src/view/data/schema.js';
import { aSite, someFacts } from '../../view/recordings.js';

const SOURCE = 'return bessel(1, x)'; // of aSite

function trace(sites: Site[], text = SOURCE): SavedTrace {
  return { id: 'shows', text, facts: { ...someFacts(sites), left_out: 0 } };
}

function output(data: unknown, metadata: unknown = undefined) {
  return { data: { [MIME_TYPE]: data }, metadata: { [MIME_TYPE]: metadata } };
}

function cell(outputs: unknown[] | null, executionCount: number | null = null) {
  const places = outputs && { length: outputs.length, get: (place: number) => outputs[place] };
  const sharedModel = { getSource: () => SOURCE };
  return { id: `c${executionCount}`, sharedModel, executionCount, outputs: places };
}

function model(...cells: ReturnType<typeof cell>[]): INotebookModel {
  return { cells } as unknown as INotebookModel;
}

test('the outputs of a notebook are read, except malformed and other ones', () => {
  const read = savedTraces(
    model(
      cell(null),
      cell([{ data: { 'text/plain': 'x' }, metadata: {} }, output(someFacts()), output('bad')], 3),
      cell([output(someFacts(), { sites: ['bad'] })], 4)
    )
  );
  expect(read.map(({ id, facts }) => [id, facts.sites.length])).toEqual([['c3', 1], ['c4', 1]]);
  expect(read[1]!.facts.sites[0]!.host_ns).toBeNull();
});

test('an output is read once, until it is replaced', () => {
  const facts = someFacts();
  const [before] = savedTraces(model(cell([output(facts)])));
  const [after] = savedTraces(model(cell([output(facts)])));
  const [replaced] = savedTraces(model(cell([output(someFacts())])));
  expect(after!.facts).toBe(before!.facts);
  expect(replaced!.facts).not.toBe(before!.facts);
});

test('each host function is a callback with the totals of its sites', () => {
  const first = aSite({ calls: 2, host_ns: 10 });
  const second = aSite({ where: 'line 5', calls: 3, errors: ['E'], host_ns: 20 });
  const other = aSite({ function: 'gamma', elided: 1, host_ns: 5 });
  const { callbacks } = savedSnapshot([trace([first, second, other])]);
  expect(callbacks).toMatchObject([
    { name: 'bessel', sites: [0, 1], calls: 5, errors: 1, host_ns: 30 },
    { name: 'gamma', sites: [2], elided: 1, host_ns: 5 }
  ]);
});

test('a site in several outputs is one row with the totals', () => {
  const first = trace([aSite({ calls: 2, errors: ['E'], host_ns: 10 })]);
  const second = trace([aSite({ calls: 1, errors: ['E'], reason: 'new', host_ns: 5 })]);
  expect(savedSnapshot([first, second]).sites).toMatchObject([
    { calls: 3, host_ns: 15, errors: ['E'], reason: 'new' }
  ]);
});

test('a site is in the cell of the output if its line is there, else in the cell that ran', () => {
  const where = 'line 4, another cell';
  const cellOf = (site: Partial<Site>, text?: string): unknown =>
    savedSnapshot([trace([aSite({ cell_id: 'ran', ...site })], text)]).sites[0]!.cell_id;
  expect(cellOf({})).toBe('shows');
  expect(cellOf({}, 'view(r)')).toBe('ran');
  expect(cellOf({ where })).toBe('ran');
  expect(cellOf({ cell: false })).toBeNull();
});

test('a hostile notebook gets a limited number of rows', () => {
  const sites = Array.from({ length: 900 }, (_, line) => aSite({ where: `line ${line}` }));
  const { sites: rows, more_sites } = savedSnapshot([trace(sites), trace(sites)]);
  expect([rows.length, more_sites]).toEqual([500, 400]);
  expect(rows[0]!.calls).toBe(2);
});

const title = { label: 'n.ipynb' } as NotebookPanel['title'];

test('cells are labelled by their last run; a notebook that has not loaded has none', () => {
  const panel = { model: model(cell([output(someFacts())], 45), cell([])), title };
  expect([...cellsOf(panel).labels()]).toEqual([['c45', '[45]'], ['cnull', '[ ]']]);
  expect(cellsOf(panel).saved().callbacks.length).toBe(1);
  expect(cellsOf({ model: null, title }).labels().size).toBe(0);
  expect(cellsOf({ model: null, title }).saved().sites).toEqual([]);
});
