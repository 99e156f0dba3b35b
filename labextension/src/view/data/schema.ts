/** The interface to Python, `report/frontend`: the types of its JSON, and what both sides know. */

import documents from './parse/documents.json';
import type { Tone } from './parse/types.js';

export type * from './parse/types.js';

export const SCHEMA = 1; // of outputs and messages, as in report/frontend/_site_view.py
export const MIME_TYPE = `application/vnd.jupyter-jaxcb.recording.v${SCHEMA}+json`;
export const TONES = documents.Tone.enum as readonly Tone[]; // worst first
export const ROW_BYTES = 18; // of a host call in the raw layout, see `RawCalls`
