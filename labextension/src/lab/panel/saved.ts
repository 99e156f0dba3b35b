/** Adds up what the host traces in a notebook's outputs say, for a notebook without live data. */

import type { ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookModel } from '@jupyterlab/notebook';
import { parseRecording, type ReadFacts } from '../../view/data/parse/recording.js';
import { MIME_TYPE, type Site } from '../../view/data/schema.js';
import { placeIn } from '../../view/data/words.js';
import { inAnotherCell } from '../../view/sites/row.js';
import type { Callback, Snapshot } from '../kernel/snapshot.js';
import { callbackOf } from './groups.js';

const MOST_SITES = 500; // each is a row of the panel

/** A host trace, and the id and source of the cell that shows it. */
export interface SavedTrace {
  readonly id: string;
  readonly text: string;
  readonly facts: ReadFacts;
}

/** The readable host traces in the outputs of a notebook. */
export function savedTraces(model: INotebookModel): SavedTrace[] {
  return [...model.cells].flatMap(cell => {
    const { outputs } = cell as ICodeCellModel; // other cells have none
    const all = Array.from({ length: outputs?.length ?? 0 }, (_, place) => outputs.get(place));
    return all.flatMap(({ data, metadata }) => {
      const facts = data[MIME_TYPE] && readTrace(data[MIME_TYPE], metadata[MIME_TYPE]);
      return facts ? [{ id: cell.id, text: cell.sharedModel.getSource(), facts }] : [];
    });
  });
}

const known = new WeakMap<object, ReadFacts | null>(); // outputs are read again after every edit

function readTrace(data: unknown, metadata: unknown): ReadFacts | null {
  if (typeof data !== 'object' || data === null) {
    return null;
  }
  if (!known.has(data)) {
    known.set(data, factsOf(data, metadata));
  }
  return known.get(data)!;
}

function factsOf(data: unknown, metadata: unknown): ReadFacts | null {
  try {
    return parseRecording(data, metadata).facts;
  } catch {
    return null; // the output itself shows why
  }
}

/** The same for the same site in every run, in every trace of a notebook. */
export function keyOf({ cell_id, where, source, function: name, flavor }: Site): string {
  return JSON.stringify([cell_id, placeIn('', where), source, name, flavor]);
}

/** The sites of all traces with their totals, and a callback for each host function. */
export function savedSnapshot(traces: readonly SavedTrace[]): Snapshot {
  const sites = new Map<string, Site>();
  const more = new Set<string>();
  for (const trace of traces) {
    trace.facts.sites.forEach(found => {
      const site = inCell(found, trace);
      const key = keyOf(site);
      const before = sites.get(key);
      if (before || sites.size < MOST_SITES) {
        sites.set(key, before ? sum(before, site) : site);
      } else {
        more.add(key);
      }
    });
  }
  const all = [...sites.values()];
  return {
    version: '',
    running: false,
    callbacks: callbacksOf(all),
    sites: all,
    values: [],
    more_sites: more.size + traces.reduce((count, { facts }) => count + facts.left_out, 0),
    cells: {}
  };
}

/** A copied notebook has other ids of cells, so the source decides. */
export function inCell(site: Site, { id, text }: SavedTrace): Site {
  const here = !inAnotherCell(site) && text.includes(site.source);
  return { ...site, cell_id: site.cell ? (here ? id : site.cell_id) : null };
}

/** The later of two results of one site, with the totals of both. */
function sum(before: Site, site: Site): Site {
  return {
    ...site,
    word: '', // it may count the calls of one run
    calls: before.calls + site.calls,
    elided: before.elided + site.elided,
    host_ns: (before.host_ns ?? 0) + (site.host_ns ?? 0),
    wall_ns: before.wall_ns && site.wall_ns ? before.wall_ns + site.wall_ns : 0,
    errors: [...new Set([...before.errors, ...site.errors])]
  };
}

function callbacksOf(sites: readonly Site[]): Callback[] {
  const found = new Map<string, number[]>();
  sites.forEach((site, place) => {
    const key = JSON.stringify([site.function, site.flavor]);
    found.set(key, [...(found.get(key) ?? []), place]);
  });
  return [...found.values()].map(places => {
    const { function: name, flavor } = sites[places[0]!]!;
    return callbackOf(name, flavor, sites, places);
  });
}
