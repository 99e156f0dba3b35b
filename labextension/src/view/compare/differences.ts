/** What changed between two runs. */

import type { Run, RunSite } from './run.js';
import { numberWords } from '../data/words.js';

/** A site in both runs; null: it is not in that run. */
export interface Pair {
  readonly before: RunSite | null;
  readonly after: RunSite | null;
}

/**
 * Pairs the sites of two runs: those of the later one in program order, then those that are gone.
 *
 * Sites match if function, flavor and source line are equal, or else function and flavor; several
 * of these match in program order. Line numbers do not count, because edits change them.
 */
export function pairsOf(before: readonly RunSite[], after: readonly RunSite[]): Pair[] {
  const partners = new Map<RunSite, RunSite>();
  const rest = new Set(before);
  for (const key of [withSource, withoutSource]) {
    const waiting = new Map<string, RunSite[]>();
    for (const site of rest) {
      const others = waiting.get(key(site));
      others ? others.push(site) : waiting.set(key(site), [site]);
    }
    for (const site of after) {
      const partner = partners.has(site) ? undefined : waiting.get(key(site))?.shift();
      if (partner) {
        partners.set(site, partner);
        rest.delete(partner);
      }
    }
  }
  const pairs: Pair[] = after.map(site => ({ before: partners.get(site) ?? null, after: site }));
  return [...pairs, ...[...rest].map(site => ({ before: site, after: null }))];
}

function withSource(site: RunSite): string {
  return [withoutSource(site), site.source].join('\n');
}

function withoutSource(site: RunSite): string {
  return [site.function, site.flavor].join('\n');
}

/** `+40 calls, p95 × 2`: what changed between runs, for the summary line; times are those of `timed`. */
export function differenceWords(before: Run, after: Run, timed = before): string {
  const [own, other] = [timed.sites, after.sites];
  const single = own.length === 1 && other.length === 1;
  const p95 = single ? ratioWords('p95', own[0]!.p95, other[0]!.p95) : '';
  const calls = callsDifference(callsOf(before.sites), callsOf(other));
  return [calls, p95 || ratioWords('time per call', ...perCall(own, other))].filter(Boolean).join(', ');
}

function callsOf(sites: readonly RunSite[]): number {
  return sites.reduce((sum, site) => sum + site.calls, 0);
}

/** What the calls of sites that both runs called would have taken before, and what they took. */
function perCall(before: readonly RunSite[], after: readonly RunSite[]): [number, number] {
  let [was, is] = [0, 0];
  for (const pair of pairsOf(before, after)) {
    const each = timePerCall(pair.before);
    if (each && pair.after?.calls) {
      was += each * pair.after.calls;
      is += pair.after.total ?? NaN;
    }
  }
  return [was, is];
}

/** The mean time of a call, in nanoseconds; null: unknown, or never called. */
export function timePerCall(site: RunSite | null | undefined): number | null {
  return site?.calls && site.total ? site.total / site.calls : null;
}

/** `+40 calls`, `−1 call`, `same number of calls`. */
function callsDifference(before: number, after: number): string {
  const more = after - before;
  return more ? `${signed(more)} ${Math.abs(more) === 1 ? 'call' : 'calls'}` : 'same number of calls';
}

/** `+40`, `−1,000`. */
export function signed(count: number): string {
  return `${count < 0 ? '−' : '+'}${numberWords(Math.abs(count))}`;
}

/** `p95 × 2`; empty if one of the times is unknown or zero. */
export function ratioWords(name: string, before: number | null, after: number | null): string {
  if (!before || !after) {
    return '';
  }
  const ratio = after / before;
  const digits = ratio >= 100 ? numberWords(Math.round(ratio)) : Number(ratio.toPrecision(2));
  return `${name} × ${digits}`.trim();
}
