import { readdirSync, readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

const LAB = ['badges.css', 'panel.css'];
const SHARED = ['jaxcb-fate', 'jaxcb-tone']; // prefixes that are meant for both

/** The classes that a style sheet has rules for. */
function classes(file: string): Set<string> {
  return new Set(readFileSync(`style/${file}`, 'utf8').match(/(?<=\.)jaxcb-[a-z0-9-]+/g) ?? []);
}

describe('style sheets', () => {
  it('of the view and of JupyterLab never speak of the same elements', () => {
    const view = readdirSync('style').filter(file => !LAB.includes(file) && file !== 'lab.css');
    const ofView = new Set(view.flatMap(file => [...classes(file)]));
    const both = LAB.flatMap(file => [...classes(file)].filter(name => ofView.has(name)));
    expect(both.filter(name => !SHARED.some(prefix => name.startsWith(prefix)))).toEqual([]);
  });
});
