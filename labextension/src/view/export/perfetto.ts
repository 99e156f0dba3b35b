/** Calls in Chrome's trace event format, and Perfetto to show them. */

import type { Measured } from '../data/schema.js';
import type { ExportedCall, ExportedCalls } from './calls.js';

const PERFETTO = 'https://ui.perfetto.dev';
const PING_MS = 50;
const PATIENCE_MS = 60_000; // loading Perfetto over a slow connection
const HOST = 1; // process number
const FIRST_THREAD = 10; // Perfetto needs numbers that no process has

/** The pieces of a trace with a slice for each call, on the track of its thread. */
export async function toPerfetto(measured: Measured, calls: ExportedCalls): Promise<BlobPart[]> {
  const tracks = new Map<string, number>();
  const track = (thread: string): number => {
    tracks.set(thread, tracks.get(thread) ?? FIRST_THREAD + tracks.size);
    return tracks.get(thread)!;
  };
  const slices = await calls.formatted(call => JSON.stringify(slice(call, track)), ',\n');
  const names = [...tracks].map(([thread, tid]) => named('thread_name', tid, thread));
  const head = { displayTimeUnit: 'ns', otherData: measured.environment };
  return [
    `${JSON.stringify(head).slice(0, -1)},"traceEvents":[\n`,
    [named('process_name', 0, 'host calls'), ...names].join(',\n'),
    ...(slices.length ? [',\n', ...slices] : []),
    '\n]}\n'
  ];
}

function slice(call: ExportedCall, track: (thread: string) => number): object {
  const { where, element, operands, results, error } = call;
  const known = Object.entries({ where, element, operands, results, error });
  return {
    ph: 'X',
    name: call.function || 'host call',
    cat: call.flavor,
    pid: HOST,
    tid: track(call.thread),
    ts: call.start_ns / 1e3,
    dur: call.duration_ns / 1e3,
    args: Object.fromEntries(known.filter(([, value]) => value))
  };
}

function named(kind: string, tid: number, name: string): string {
  return JSON.stringify({ ph: 'M', name: kind, pid: HOST, tid, args: { name } });
}

/**
 * Opens Perfetto in a new tab and hands it a trace; call it in a click, else the tab is blocked.
 *
 * Perfetto shows the trace in the browser and does not upload it. It answers PING once it has
 * loaded.
 *
 * Throws Error with a sentence that says what to do if the tab cannot be opened or does not answer.
 */
export async function openInPerfetto(
  trace: () => Promise<ArrayBuffer>,
  title: string
): Promise<void> {
  const tab = window.open(PERFETTO);
  if (!tab) {
    throw new Error('the browser blocked the new tab. Save the trace and open it in Perfetto.');
  }
  const [buffer] = await Promise.all([trace(), answered(tab)]);
  tab.postMessage({ perfetto: { buffer, title } }, PERFETTO, [buffer]);
}

function answered(tab: Window): Promise<void> {
  return new Promise((resolve, reject) => {
    const since = Date.now();
    const stop = (): void => {
      clearInterval(timer);
      window.removeEventListener('message', listen);
    };
    const listen = ({ source, origin, data }: MessageEvent): void => {
      if (source === tab && origin === PERFETTO && data === 'PONG') {
        stop();
        resolve();
      }
    };
    const timer = setInterval(() => {
      if (tab.closed || Date.now() - since > PATIENCE_MS) {
        stop();
        reject(new Error('Perfetto does not answer. Save the trace and open it in Perfetto.'));
      } else {
        tab.postMessage('PING', PERFETTO);
      }
    }, PING_MS);
    window.addEventListener('message', listen);
  });
}
