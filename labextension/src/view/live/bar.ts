/** The progress bar of a running cell, shown if the number of calls is known. */

import { h, setText } from '../dom/elements.js';
import { percentDone, progressWords } from './progress.js';
import type { Progress } from '../data/schema.js';

export class Bar {
  private readonly fill = h('span', { class: 'jaxcb-bar-fill' });
  private readonly track = h(
    'div',
    {
      class: 'jaxcb-bar',
      role: 'progressbar',
      'aria-label': 'host calls of this cell',
      'aria-valuemin': 0,
      'aria-valuemax': 100
    },
    this.fill
  );
  private readonly words = h('span', { class: 'jaxcb-live-words' }, 'starting…');
  readonly node = h('div', { class: 'jaxcb-live-head' }, this.track, this.words);

  update(progress: Progress): void {
    const words = progressWords(progress);
    const percent = percentDone(progress);
    setText(this.words, words);
    this.track.setAttribute('aria-valuetext', words);
    this.track.classList.toggle('jaxcb-bar-unknown', percent === null);
    if (percent === null) {
      this.track.removeAttribute('aria-valuenow');
    } else {
      this.track.setAttribute('aria-valuenow', String(Math.floor(percent)));
    }
    this.fill.style.width = percent === null ? '' : `${percent.toFixed(1)}%`;
  }
}
