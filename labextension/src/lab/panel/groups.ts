/** Groups, sorts and filters the callbacks and sites of a snapshot for the panel. */

import { statusWord } from '../../view/data/words.js';
import type { Site } from '../../view/data/schema.js';
import type { Callback, Snapshot } from '../kernel/snapshot.js';

const FORMERLY = 'formerly';

export interface Group {
  readonly key: string; // the same for the same callback in a later snapshot
  readonly callback: Callback;
  readonly sites: readonly number[]; // places in the snapshot's sites
}

/** The sort orders with their labels. */
export const ORDERS = {
  registered: 'As registered',
  calls: 'Most calls',
  host_ns: 'Most time',
  trouble: 'Errors and elided calls'
} as const;
export type Order = keyof typeof ORDERS;

/** All callbacks in order of registration, then the sites whose callback is no longer registered. */
export function groupsOf(snapshot: Snapshot): Group[] {
  const seen = new Map<string, number>();
  const groups = snapshot.callbacks.map(callback => {
    const name = JSON.stringify([callback.name, callback.cell, callback.line]);
    const count = seen.get(name) ?? 0;
    seen.set(name, count + 1);
    return { key: `${name} ${count}`, callback, sites: callback.sites };
  });
  const taken = new Set(snapshot.callbacks.flatMap(callback => callback.sites));
  const left = [...snapshot.sites.keys()].filter(site => !taken.has(site));
  return left.length > 0 ? [...groups, formerly(snapshot, left)] : groups;
}

/** Sorts the groups stably, and the sites in each; sites without a callback come last. */
export function sorted(snapshot: Snapshot, groups: readonly Group[], order: Order): Group[] {
  if (order === 'registered') {
    return [...groups];
  }
  const amountOf = (place: number): number => {
    const { calls, host_ns, errors, elided } = snapshot.sites[place]!;
    return { calls, host_ns: host_ns ?? 0, trouble: errors.length + elided }[order];
  };
  const rank = ({ key, callback }: Group): number => {
    const amount = order === 'trouble' ? callback.errors + callback.elided : callback[order];
    return key === FORMERLY ? -1 : amount;
  };
  return [...groups]
    .sort((one, other) => rank(other) - rank(one))
    .map(group => {
      const sites = [...group.sites].sort((one, other) => amountOf(other) - amountOf(one));
      return { ...group, sites };
    });
}

/**
 * The group with those of its sites whose texts have all words of `query`; null if nothing has them.
 *
 * The texts include those of the callback, and `labels`, the labels of cells by id.
 */
export function filtered(
  snapshot: Snapshot,
  group: Group,
  query: string,
  labels: ReadonlyMap<string, string>
): Group | null {
  const words = query.toLowerCase().split(/\s+/);
  const matches = (...texts: string[]): boolean => {
    const text = texts.join('\n').toLowerCase();
    return words.every(word => text.includes(word));
  };
  const { name, flavor, options, where, cell } = group.callback;
  const about = [name, flavor, options, where, labels.get(cell ?? '') ?? ''];
  if (matches(...about)) {
    return group;
  }
  const sites = group.sites.filter(place => {
    const site = snapshot.sites[place]!;
    const { source, consequence, reason } = site;
    const label = labels.get(site.cell_id ?? '') ?? '';
    const status = [consequence, statusWord(consequence)];
    return matches(...about, label, site.where, source, ...status, reason, ...site.errors);
  });
  return sites.length > 0 ? { ...group, sites } : null;
}

function formerly(snapshot: Snapshot, sites: readonly number[]): Group {
  const callback = callbackOf('No longer registered', '', snapshot.sites, sites);
  return { key: FORMERLY, callback, sites };
}

/** A callback whose registration is unknown, with the totals of its sites. */
export function callbackOf(
  name: string,
  flavor: string,
  all: readonly Site[],
  sites: readonly number[]
): Callback {
  const total = (of: (site: Site) => number): number =>
    sites.reduce((sum, place) => sum + of(all[place]!), 0);
  return {
    ...{ name, flavor, options: '', cell: null, line: 0, where: '', sites },
    calls: total(site => site.calls),
    elided: total(site => site.elided),
    errors: total(site => site.errors.length),
    host_ns: total(site => site.host_ns ?? 0)
  };
}
