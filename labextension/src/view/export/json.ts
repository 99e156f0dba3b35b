/** A recording as JSON for other programs: call sites and calls, with names instead of numbers. */

import type { Facts, Measured } from '../data/schema.js';
import type { ExportedCalls } from './calls.js';

/** The pieces of a JSON file. */
export async function toJson(
  facts: Facts,
  measured: Measured,
  calls: ExportedCalls
): Promise<BlobPart[]> {
  const head = JSON.stringify({
    schema: facts.schema,
    environment: measured.environment,
    compilations: measured.compilations,
    sites: facts.sites
  });
  const rows = await calls.formatted(call => JSON.stringify(call), ',\n');
  return [`${head.slice(0, -1)},\n"calls":[\n`, ...rows, '\n]}\n'];
}
