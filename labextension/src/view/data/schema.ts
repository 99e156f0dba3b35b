/**
 * The interface to Python, `report/frontend`: the types of a recording, and what both sides know.
 *
 * `Facts` are the same for equal programs and are in the data of an output; `Measured` changes from
 * run to run (times, threads, the order of calls) and is in its metadata. `Site` is also what the
 * kernel's messages say about a call site. The types are those that the readers return.
 */

export * from './parse/known.js';
export type { Compilation, Measured, SavedCalls } from './parse/measured.js';
export type { Facts, Part } from './parse/parse.js';
export type { Profile, ProfileKind, ProfileLane, ProfilePart } from './parse/profile.js';
export type { Progress, RunningCall } from './parse/progress.js';
export type {
  ArrayValues,
  Aval,
  Axes,
  Level,
  Mask,
  Proposal,
  SampleValues,
  Site,
  SiteMeasured,
  Stopped,
  Variant
} from './parse/site.js';
