/** The numbers and words that Python and this library both know. */

import phrases from '../phrases.json';

export const SCHEMA = 1; // of outputs and messages, as in report/frontend/_site_view.py
export const MIME_TYPE = `application/vnd.jupyter-jaxcb.recording.v${SCHEMA}+json`;

/** What matters most about the calls of a site: a problem, or else its status. */
export type Consequence = keyof typeof phrases.tones;
export const CONSEQUENCES = Object.keys(phrases.tones) as readonly Consequence[];
export type Status = Exclude<Consequence, 'raised' | 'stopped' | 'not_finite' | 'running'>;
export const STATUSES = CONSEQUENCES.filter(
  (one): one is Status => !['raised', 'stopped', 'not_finite', 'running'].includes(one)
);

/** How much a consequence matters. It sets the color; sign and text express it too. */
export type Tone = 'error' | 'warning' | 'kept' | 'quiet';
export const TONES: readonly Tone[] = ['error', 'warning', 'kept', 'quiet']; // worst first

/** What becomes of the batch elements of one `vmap` in one array of a host call. */
export type AxisKind = keyof typeof phrases.arguments;
export const AXIS_KINDS = Object.keys(phrases.arguments) as readonly AxisKind[];

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

export const ROW_BYTES = 18; // of a host call, see `SavedCalls`
export const OUT_OF_RANGE = 0xffff; // in place of a number that two bytes cannot hold

// No text is longer, in characters; the others are cut.
export const NAME = 200;
export const SENTENCE = 1_000;
export const LONG = 10_000; // an error with its traceback
