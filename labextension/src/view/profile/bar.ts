/** The wall time as one bar, divided by kind. */

import { kindColour } from '../colours.js';
import type { Profile } from '../data/schema.js';
import { h } from '../dom/elements.js';
import { hideTooltip, placeTooltip } from '../dom/tooltip.js';
import type { Mark } from './mark.js';
import { kindWords, wallShare } from './words.js';

export class WallBar {
  readonly node: HTMLElement;
  private readonly segments: readonly HTMLElement[];

  /** Args: box: the tooltip. */
  constructor(
    private readonly profile: Profile,
    private readonly box: HTMLElement
  ) {
    const total = profile.kinds.reduce((sum, kind) => sum + kind.wall_ns, 0);
    this.segments = profile.kinds.map(({ id, name, wall_ns }) => {
      const share = h('span', {}, wallShare(profile, wall_ns));
      const segment = h('div', { class: 'jaxcb-profile-segment' }, h('span', {}, name), share);
      segment.style.setProperty('--jaxcb-own', `var(${kindColour(id)})`);
      segment.style.setProperty('flex-grow', String(total > 0 ? (100 * wall_ns) / total : 1));
      return segment;
    });
    const attributes = { class: 'jaxcb-profile-bar', role: 'img', 'aria-label': profile.headline };
    this.node = h('div', attributes, ...this.segments);
    this.node.addEventListener('pointermove', this.hover);
    this.node.addEventListener('pointerleave', () => hideTooltip(box));
  }

  /** Dims the segments of other kinds. */
  highlight(mark: Mark | null): void {
    this.segments.forEach((segment, kind) => {
      segment.classList.toggle('jaxcb-profile-dimmed', mark !== null && mark.kind !== kind);
    });
  }

  private readonly hover = (event: PointerEvent): void => {
    const target = event.target as Node;
    const kind = this.profile.kinds[this.segments.findIndex(each => each.contains(target))];
    if (kind) {
      this.box.replaceChildren(kindWords(this.profile, kind));
      placeTooltip(this.box, event.clientX, event.clientY);
    }
  };
}
