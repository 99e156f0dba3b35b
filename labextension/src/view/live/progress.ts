/** Texts for the live view of a running cell. */

import type { Progress, RunningCall, Site } from '../data/schema.js';
import {
  callWords,
  failedWords,
  joined,
  numberWords,
  someOf,
  timeWords,
  warningWords
} from '../data/words.js';

/** Calls that take longer are shown with a warning. */
export const SLOW_NS = 5e9;

const SECOND = 1e9;

/** `3.2 s`, `1 min 12 s`: a running clock, so seconds always have one decimal. */
export function elapsedWords(ns: number): string {
  const seconds = ns / SECOND;
  if (seconds < 59.95) {
    return `${seconds.toFixed(1)} s`;
  }
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes} min ${whole % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/**
 * `431 of 10,000 calls · 2,310 calls/s · 3.2 s, about 5 s left`.
 *
 * `run 21 · 18 of 100 calls · ...` in a Python loop, of which nobody knows the end. There is no rate
 * before the first call has returned.
 */
export function progressWords(progress: Progress): string {
  const { calls, expected, run, rate } = progress;
  const earlier = run ? (run - 1) * (expected ?? 0) : 0;
  const counted =
    expected !== null && expected >= calls - earlier
      ? joined([run > 0 && `run ${numberWords(run)}`, someOf(calls - earlier, expected)])
      : callWords(calls);
  const speed = rate < 10 ? Number(rate.toFixed(1)) : Math.round(rate);
  const pace = calls > 0 ? [`${numberWords(speed)} calls/s`] : [];
  const left = leftWords(progress);
  const time = [elapsedWords(progress.elapsed_ns), ...(left ? [left] : [])].join(', ');
  return joined([counted, ...pace, time]);
}

/** `about 13 s left`, at the current rate; empty if the total is unknown, or for the last second. */
function leftWords({ calls, expected, run, rate }: Progress): string {
  const seconds = expected === null || run || rate === 0 ? 0 : Math.round((expected - calls) / rate);
  const minutes = Math.round(seconds / 60);
  if (seconds < 1) {
    return '';
  }
  if (seconds < 120) {
    return `about ${seconds} s left`;
  }
  return minutes < 120 ? `about ${minutes} min left` : `about ${Math.round(minutes / 60)} h left`;
}

/** The percentage of the expected calls that were made; null if unknown. */
export function percentDone({ calls, expected, run }: Progress): number | null {
  return expected === null || expected === 0 || run ? null : Math.min(100, (100 * calls) / expected);
}

/** `bessel, line 3 · element 2 · Thread-1`. */
export function runningWords(call: RunningCall): string {
  const element = call.element < 0 ? [] : [`element ${call.element}`];
  return joined([`${call.function}, ${call.where}`, ...element, call.thread]);
}

/** `still running, 0.6 s`, `⚠ still running, 6.2 s`. */
export function stillRunning({ elapsed_ns }: RunningCall): string {
  const words = `still running, ${elapsedWords(elapsed_ns)}`;
  return elapsed_ns >= SLOW_NS ? warningWords(words) : words;
}

/** `41 calls · 2.1 ms`, `41 calls · ✕ 2 failed · 2.1 ms`. */
export function progressSiteWords({ calls, errors, host_ns }: Site): string {
  return joined([callWords(calls), ...errors.map(failedWords), timeWords(host_ns ?? 0)]);
}

const ANNOUNCED_EVERY = 10 * SECOND;

/** Announces to screen readers: the start, urgent news, and progress every ten seconds. */
export class Announcer {
  private last: number | null = null;
  private slow = false;

  /** The text to announce now; null: none. */
  next(progress: Progress): string | null {
    const slow = progress.running.find(call => call.elapsed_ns >= SLOW_NS);
    const newlySlow = slow !== undefined && !this.slow;
    this.slow = slow !== undefined;
    const since = this.last === null ? Infinity : progress.elapsed_ns - this.last;
    if (!newlySlow && since >= 0 && since < ANNOUNCED_EVERY) {
      return null;
    }
    this.last = progress.elapsed_ns;
    return slow
      ? `${runningWords(slow)} has been running for ${elapsedWords(slow.elapsed_ns)}`
      : progressWords(progress);
  }
}
