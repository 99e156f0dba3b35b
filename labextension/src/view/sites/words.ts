/** Texts for the list of sites. */

import { cut } from '../data/parse/conform.js';
import phrases from '../data/phrases.json';
import type { Facts, Site } from '../data/schema.js';
import {
  callWords,
  numberWords,
  say,
  someOf,
  timeWords
} from '../data/words.js';

/** Whether the recording has times, which cleared metadata does not. */
export function timesKnown({ sites }: Facts): boolean {
  return sites.some(site => site.host_ns !== null);
}

/** All time in host functions, as far as it is known. */
export function hostTime({ sites }: Facts): number {
  return sites.reduce((sum, site) => sum + (site.host_ns ?? 0), 0);
}

/** Counts the calls of a site, or of one run if nothing ran: `5 calls`, `3 of 5 expected`. */
export function siteCalls(site: Site, ahead: boolean): string {
  const { calls, expected, written } = site;
  if (!ahead) {
    return expected === null || expected === calls
      ? callWords(calls)
      : `${numberWords(calls)} of ${numberWords(expected)} expected`;
  }
  if (expected === null) {
    return phrases.data_decide;
  }
  return written === null || written === expected
    ? callWords(expected)
    : someOf(expected, written);
}

/** `41 µs`, or `336 ms of work in 89 ms` if an executor's workers made the calls; empty: none, or not saved. */
export function workWords({ calls, cost, host_ns: ns, wall_ns: wall }: Site): string {
  const time = calls > 0 && ns ? timeWords(ns) : '';
  const words = time && wall ? say(phrases.work_in, { work: time, wall: timeWords(wall) }) : time;
  return words && cost ? `${words} (${cost})` : words;
}

/** What the proposals for a site say. */
export function proposed({ proposals }: Site): string[] {
  return proposals.map(([, advice]) => advice);
}

/** `the first is call 37, batch element 4`: of the calls that returned NaN or infinity. */
export function firstWords({ first_element: element }: Site, row: number, several: boolean): string {
  const call = numberWords(row + 1);
  const words = several
    ? say(phrases.first_not_finite, { call })
    : say(phrases.only_not_finite, { call });
  return words + (element < 0 ? '' : say(phrases.at_element, { element }));
}

/** The most informative line of an error: the first, or the last of a traceback. */
export function errorWords(error: string, longest: number): string {
  const lines = error.split('\n').filter(line => line.trim());
  const line = (lines[0]?.startsWith('Traceback') ? lines.at(-1) : lines[0]) ?? 'an error';
  return cut(line, longest);
}
