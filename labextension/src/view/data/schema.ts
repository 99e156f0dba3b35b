/**
 * A recording as `report/frontend` writes it: the interface to Python.
 *
 * `Facts` are the same for equal programs and are in the data of an output; `Measured` changes from
 * run to run (times, threads, the order of calls) and is in its metadata. `Site` is also what the
 * kernel's messages say about a call site; `view.schema.json` beside `_site_view.py` describes it.
 */

import phrases from './phrases.json';

export const SCHEMA = 1;
export const MIME_TYPE = `application/vnd.jupyter-jaxcb.recording.v${SCHEMA}+json`;

/** What matters most about the calls of a site: a problem, or else its status. */
export type Consequence = keyof typeof phrases.tones;
export const CONSEQUENCES = Object.keys(phrases.tones) as readonly Consequence[];
export type Status = Exclude<Consequence, 'raised' | 'not_finite'>;
export const STATUSES = CONSEQUENCES.filter(
  (one): one is Status => one !== 'raised' && one !== 'not_finite'
);

/** How much a consequence matters. It sets the color; sign and text express it too. */
export type Tone = 'error' | 'warning' | 'kept' | 'quiet';
export const TONES: readonly Tone[] = ['error', 'warning', 'kept', 'quiet']; // worst first

/** One clause of the summary line. */
export type Part = readonly [tone: Tone, text: string];

/** Shape and dtype of one array. */
export type Aval = readonly [shape: readonly number[], dtype: string];

/** What one `vmap` did: its size, its method, and which operands it maps over. */
export type Level = readonly [size: number, method: string, batched: readonly boolean[]];

/** What becomes of the batch elements of one `vmap` in one array of a host call. */
export type AxisKind = keyof typeof phrases.arguments;
export const AXIS_KINDS = Object.keys(phrases.arguments) as readonly AxisKind[];

/** What one `vmap` did to the arrays of a host call. */
export interface Axes {
  readonly operands: readonly AxisKind[];
  readonly results: AxisKind;
  readonly mask?: AxisKind | undefined; // only of masked calls
}

/** One variant of a call site: a combination of shapes and vmap levels. */
export interface Variant {
  readonly operands: readonly Aval[]; // as one host call sees them
  readonly results: readonly Aval[];
  readonly operand_names: readonly string[]; // "x", "params['w']"; empty: unknown
  readonly result_names: readonly string[];
  readonly levels: readonly Level[]; // innermost vmap first
  readonly axes: readonly Axes[]; // by level
  readonly calls: number;
  readonly shards: number; // 0: one call for all devices
  readonly devices: readonly string[];
  readonly gathered_bytes: number;
  readonly mask?: Mask | undefined; // only of masked calls
  readonly stopped?: Stopped | undefined; // only if the host function raised
}

/** Where calls stopped before the last batch element, because the host function raised. */
export type Stopped = readonly [element: number, times: number];

/** The mask of masked calls; `elements` is 0 if nothing ran. */
export type Mask = readonly [
  batched: readonly boolean[], // per vmap, innermost first
  needed: number, // batch elements for which it was true
  elements: number
];

/** Abbreviated argument and result values of one host call. */
export type SampleValues = readonly [
  element: number, // -1: no element
  operands: readonly string[],
  results: readonly string[],
  failed: boolean,
  shard: number | null
];

/** What the data of an output says about a call site: a line that binds a callback, with its status. */
export interface SiteFacts {
  readonly function: string;
  readonly flavor: string;
  readonly where: string; // "line 3", "line 3, another cell", "model.py:12", "a program compiled earlier"
  readonly line: number; // 1-based; 0: unknown
  readonly column: number; // 0-based
  readonly cell: boolean; // in a notebook cell, not in a file
  readonly source: string; // the line, stripped
  readonly status: Status;
  readonly consequence: Consequence;
  readonly reason: string; // empty when its calls are simply kept
  readonly advice: string;
  readonly calls: number;
  readonly crossings: number;
  readonly expected: number | null; // calls of the recorded runs, as compiled; null: unknown
  readonly written: number | null; // calls of the recorded runs in the program text
  readonly elided: number; // outcomes with an elided status
  readonly notes: readonly string[];
  readonly errors: readonly string[];
  readonly shapes: readonly Variant[];
  readonly sample_values: readonly SampleValues[]; // empty unless requested
}

/** What its metadata says about the same site. */
export interface SiteMeasured {
  readonly host_ns: number | null; // in the host function, summed over calls; null: not saved
  readonly variants_ns: readonly number[]; // the same by variant
  readonly cell_id: string | null; // of its notebook cell; null: a file or an unknown cell
  readonly cell_line: number; // in that cell, 1-based; 0: unknown
  readonly around: readonly string[]; // "scan of 5", outermost first
  readonly stack: readonly string[]; // the same with transformations
  readonly sample_rows: readonly number[]; // by sample: its call, or -1
}

/** Everything about a call site; one of a running cell has less in it. */
export interface Site extends SiteFacts, SiteMeasured {}

export interface Facts {
  readonly schema: number;
  readonly headline: readonly Part[]; // worst first
  readonly sites: readonly Site[]; // in program order
  readonly overflow: number; // host calls after the log was full, not in the counts
  readonly not_kept?: number; // host calls in the counts but without a row; absent: none
  readonly ahead: boolean; // nothing ran: `expected` is that of one run
}

/**
 * Host calls as columns, little-endian, one after the other: start (u32, since the previous row),
 * duration (u32), element (i32), variant (u16), thread (u16), error (u16); times in `unit_ns`.
 *
 * `variant` is an index into the variants of all sites, concatenated; 0xffff: out of range.
 * `error` is 0, or 1 + an index into `Measured.errors`.
 * Saved columns are split into byte planes (all lowest bytes first), compressed by zlib, and
 * encoded in base64.
 */
export interface SavedCalls {
  readonly rows: number;
  readonly unit_ns: number;
  readonly zlib: string;
}

export const ROW_BYTES = 18;
export const OUT_OF_RANGE = 0xffff;

export interface Measured {
  readonly id: string; // of the recording in a running kernel; empty: none
  readonly environment: Readonly<Record<string, string>>;
  readonly out_of_order: readonly string[];
  readonly by_worker: readonly string[]; // number of calls by each worker of an executor
  readonly compilations: readonly Compilation[];
  readonly threads: readonly string[];
  readonly errors: readonly string[];
  readonly calls: SavedCalls | null; // null: sent separately, or there are none
  readonly calls_not_saved: number;
  readonly profile?: Profile | undefined; // only of a profiled block
}

/** What takes wall time, as the parts of a profile are grouped. */
export const PROFILE_KINDS = [
  'host',
  'crossing',
  'queued',
  'waiting',
  'xla',
  'copy',
  'compilation',
  'dispatch',
  'python',
  'idle',
  'unknown'
] as const;
export type KindId = (typeof PROFILE_KINDS)[number];

/** Where the wall time of a profiled block went, as `report/frontend/_profile.py` writes it. */
export interface Profile {
  readonly wall_ns: number;
  readonly start_ns: number | null; // of the block, since the first call; null: no calls
  readonly headline: string; // "1.30 s: 82 % host functions, 12 % XLA, 3 % crossings, 3 % other"
  readonly advice: readonly string[]; // sentences, each with its figure
  readonly notes: readonly string[]; // the cost of profiling, what was left out
  readonly kinds: readonly ProfileKind[]; // in the order of the bar, without empty ones
  readonly parts: readonly ProfilePart[]; // by kind, longest first
  readonly lanes: readonly ProfileLane[]; // the block as the bar divides it, threads, devices
}

export interface ProfileKind {
  readonly id: KindId;
  readonly name: string; // "host functions"
  readonly wall_ns: number;
}

export interface ProfilePart {
  readonly kind: number; // index into `kinds`
  readonly name: string; // "simulate", "dot_general", "jit_step", or "other"
  readonly where: string; // "line 3", "model.py:12", or empty
  readonly wall_ns: number; // its share of the wall time; all shares add up to it
  readonly busy_ns: number; // summed over threads and devices
  readonly count: number; // of calls, operations or compilations; 0: not counted
}

export interface ProfileLane {
  readonly name: string;
  /** Flat triples, sorted, not overlapping: start since the block began, duration, part. */
  readonly spans: readonly number[];
}

export interface Compilation {
  readonly program: string;
  readonly lower_ns: number;
  readonly compile_ns: number;
  readonly start_ns?: number | null; // of lowering, since the first call; null: unknown
}

/** The progress of a running cell, sent by the kernel ten times a second. */
export interface Progress {
  readonly elapsed_ns: number;
  readonly since_first_ns: number; // since the first call began; 0: none has
  readonly calls: number;
  readonly rate: number; // calls per second, recently
  readonly expected: number | null; // calls of the runs so far; null: unknown
  readonly running: readonly RunningCall[]; // that have been running for some time
  readonly sites: readonly Site[];
  readonly not_sent: number; // calls left out of the timeline to limit the load on the kernel
}

export interface RunningCall {
  readonly function: string;
  readonly where: string;
  readonly element: number; // -1: no element
  readonly thread: string;
  readonly elapsed_ns: number;
}
