/** Texts for the list of sites. */

import { cut } from '../data/parse/fields.js';
import phrases from '../data/phrases.json';
import type { Facts, SampleValues, Site, Variant } from '../data/schema.js';
import {
  byteWords,
  callWords,
  counted,
  numberWords,
  say,
  someOf,
  splitLevels,
  timeWords
} from '../data/words.js';

const MOST_DEVICES = 8; // listed by name

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
export function workWords({ calls, host_ns: ns, wall_ns: wall }: Site): string {
  const time = calls > 0 && ns ? timeWords(ns) : '';
  return time && wall ? say(phrases.work_in, { work: time, wall: timeWords(wall) }) : time;
}

/** The number of calls of a `vmap` that loops over batch elements where it need not; 0: they take little. */
export function slowCalls({ batch_calls: fewer, shapes, variants_ns: times }: Site): number {
  const looped = [...shapes.keys()].filter(place => splitLevels(shapes[place]!)[0].length);
  const ns = looped.reduce((sum, place) => sum + (times[place] ?? 0), 0);
  return fewer && ns >= phrases.slow_ns ? looped.reduce((sum, place) => sum + shapes[place]!.calls, 0) : 0;
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

/** `2 shards (cpu:0, cpu:1), gathers 4.1 kB`; empty for one call on one device. */
export function shardWords(variant: Variant): string {
  const words: string[] = [];
  if (variant.shards) {
    const more = variant.devices.length > MOST_DEVICES ? ['…'] : [];
    const names = [...variant.devices.slice(0, MOST_DEVICES), ...more].join(', ');
    words.push(`${counted(variant.shards, 'shard')}${names && ` (${names})`}`);
  }
  if (variant.gathered_bytes) {
    words.push(say(phrases.gathers, { bytes: byteWords(variant.gathered_bytes) }));
  }
  return words.join(', ');
}

/** The most informative line of an error: the first, or the last of a traceback. */
export function errorWords(error: string, longest: number): string {
  const lines = error.split('\n').filter(line => line.trim());
  const line = (lines[0]?.startsWith('Traceback') ? lines.at(-1) : lines[0]) ?? 'an error';
  return cut(line, longest);
}

/** `element 2: 0.5, 1 → 0.479`: arguments and result of one call. */
export function sampleWords([element, operands, results, failed, shard]: SampleValues): string {
  const where =
    (shard === null ? '' : say(phrases.of_shard, { shard })) +
    (element < 0 ? '' : say(phrases.of_element, { element }));
  const given = operands.join(', ') || phrases.nothing;
  const result = failed ? phrases.raised : results.join(', ') || phrases.nothing;
  return `${where}${given} → ${result}`;
}
