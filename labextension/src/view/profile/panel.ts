/** The panel of the tab Time: where the wall time of a profiled block went. */

import type { Profile } from '../data/schema.js';
import { h, type Child } from '../dom/elements.js';
import { hideTooltip, tooltip } from '../dom/tooltip.js';
import { WallBar } from './bar.js';
import { Lanes } from './lanes.js';
import { profileTable } from './table.js';

export class ProfilePanel {
  readonly node = h('div', { class: 'jaxcb-profile' });
  private readonly box = tooltip();
  private readonly lanes: Lanes | null;

  /**
   * Args:
   *   more: what follows a sentence of advice.
   */
  constructor(profile: Profile, more: (advice: string) => readonly Child[] = () => []) {
    const bar = new WallBar(profile, this.box);
    this.lanes = profile.lanes.length ? new Lanes(profile, this.box) : null;
    const table = profileTable(profile, mark => {
      bar.highlight(mark);
      this.lanes?.highlight(mark);
    });
    this.node.append(
      ...(profile.kinds.length ? [bar.node] : []),
      ...adviceList(profile.advice, more),
      table,
      ...(this.lanes ? [this.lanes.node] : []),
      ...profile.notes.map(words => h('p', { class: 'jaxcb-profile-note' }, words)),
      this.box
    );
  }

  dispose(): void {
    hideTooltip(this.box);
    this.lanes?.dispose();
    this.node.remove();
  }
}

function adviceList(
  advice: readonly string[],
  more: (advice: string) => readonly Child[]
): HTMLElement[] {
  const items = advice.map(words => h('li', {}, words, ...more(words)));
  return items.length ? [h('ul', { class: 'jaxcb-profile-advice', role: 'list' }, ...items)] : [];
}
