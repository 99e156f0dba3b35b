import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import { readMessage } from '../../../../src/lab/kernel/snapshot.js';
import { conform } from '../../../../src/view/data/parse/conform.js';
import { parseRecording } from '../../../../src/view/data/parse/recording.js';
import { MIME_TYPE, type Documents } from '../../../../src/view/data/schema.js';
import { LiveView } from '../../../../src/view/live/live.js';
import { TraceView } from '../../../../src/view/view.js';
import { aProfile } from '../../profile/profiles.js';
import { changed } from '../../recordings.js';

const { data, metadata } = JSON.parse(readFileSync('../tests/data/recording.json', 'utf8'));
const { snapshot, progress } = JSON.parse(readFileSync('../tests/data/messages.json', 'utf8'));
const FACTS = data[MIME_TYPE];
const MEASURED = { ...metadata[MIME_TYPE], profile: aProfile() };
const VALUES: readonly unknown[] = [
  null, true, -1, 1e300, 'NaN', '<img src=x onerror="hacked()">', 'x'.repeat(1_000_000), {}, [],
  { length: 1e9, __proto__: { calls: 1 } }, Array(1_000_000).fill(0)
];

/** The path of every value, once for all sites: `sites.0.calls`. */
function* paths(value: unknown, at = ''): Generator<string> {
  for (const [key, inner] of typeof value === 'object' && value ? Object.entries(value) : []) {
    yield at + key;
    yield* paths(inner, `${at}${key}.`);
  }
}

function pathsIn(document: unknown): string[] {
  const all = [...paths(document)].map(path => [path.replace(/^sites\.\d+/, 'sites.#'), path] as const);
  return [...new Map(all.reverse()).values()].filter(path => path !== 'schema'); // which has to be 1
}

const FACTS_PATHS = pathsIn(FACTS);
const MEASURED_PATHS = pathsIn(MEASURED);

/** What is read is of the schema: read again, nothing is wrong with it. */
function expectRead<K extends keyof Documents>(kind: K, read: Documents[K]): void {
  expect(conform(kind, read)[1]).toBe('');
}

/** Shows a recording with everything open. */
function shown(facts: unknown, measured: unknown): HTMLElement {
  const view = new TraceView();
  view.show(facts, measured);
  view.expand();
  for (const fold of view.node.querySelectorAll<HTMLElement>('.jaxcb-site-fold, [role=tab]')) {
    fold.click();
  }
  view.dispose();
  return view.node;
}

test.each(VALUES.map((value, place) => [String(JSON.stringify(value)).slice(0, 40), value, place] as const))(
  'no value of a document may be %s and do harm',
  (_, value, place) => {
    for (const path of FACTS_PATHS) {
      expectRead('Facts', parseRecording(changed(FACTS, path, value), MEASURED).facts);
    }
    for (const path of MEASURED_PATHS) {
      expectRead('Measured', parseRecording(FACTS, changed(MEASURED, path, value)).measured);
    }
    for (const path of pathsIn(snapshot)) {
      const read = readMessage(changed(snapshot, path, value));
      expect(read.type).toMatch(/^(snapshot|trouble)$/);
    }
    // To show all of them takes a minute; tests/browser does.
    const mine = <T>(all: Iterable<T>): T[] => [...all].filter((_, at) => at % (3 * VALUES.length) === place);
    const live = new LiveView();
    for (const path of mine(paths(progress))) {
      live.update(changed(progress, path, value), []);
    }
    const nodes = [
      live.node,
      ...mine(FACTS_PATHS).map(path => shown(changed(FACTS, path, value), MEASURED)),
      ...mine(MEASURED_PATHS).map(path => shown(FACTS, changed(MEASURED, path, value)))
    ];
    live.dispose();
    for (const node of nodes) {
      expect(node.querySelectorAll('img, script, [onerror], a[href]')).toHaveLength(0);
      expect(node.textContent.length).toBeLessThan(200_000);
    }
  },
  300_000
);
