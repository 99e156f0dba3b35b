/** The live view of a running cell: progress, running calls, timeline. */

import { coloursOf } from '../colours.js';
import { h, setText } from '../dom/elements.js';
import { Bar } from './bar.js';
import { Notice } from './notice.js';
import { Rows } from './rows.js';
import { conform } from '../data/parse/conform.js';
import {
  Announcer,
  progressSiteWords,
  runningWords,
  SLOW_NS,
  stillRunning
} from './progress.js';
import { appendRaw, type RawCalls } from '../data/raw.js';
import type { Progress } from '../data/schema.js';
import type { Labels } from '../data/labels.js';
import { Store } from '../data/store.js';
import { Timeline } from '../calls/timeline/timeline.js';
import { CALLS, NO_LOOK, remember, remembered, SITES } from '../remembered.js';
import { callWords, failedWords, toneOf } from '../data/words.js';

const MOST_SITES = 60;
const LONG_NS = 2e9; // the host trace of a cell that ran for longer opens, as its live view was
const MOST_RUNNING = 8;

export class LiveView {
  readonly node = h('div', { class: 'jaxcb-view jaxcb-live' });
  private readonly bar = new Bar();
  private readonly notice = new Notice();
  private readonly announcer = new Announcer();
  private readonly announced = h('div', { class: 'jaxcb-announced', role: 'status' });
  private readonly running = new Rows('jaxcb-live-running', 'Host calls running', MOST_RUNNING);
  private readonly sites = new Rows('jaxcb-live-sites', 'Host calls by site', MOST_SITES);
  private readonly notSent = h('p', { class: 'jaxcb-muted', hidden: true });
  private readonly notObserved = h('p', { class: 'jaxcb-muted', hidden: true });
  private readonly problem = h('p', { class: 'jaxcb-bad', hidden: true });
  private readonly details = h(
    'details',
    { class: 'jaxcb-live-timeline' },
    h('summary', {}, 'timeline')
  );
  private readonly store = new Store(labelsWhile([], [], []));
  private labelled = '';
  private timeline: Timeline | null = null;
  private placed = false; // in the document, as the user left the cell's last view

  constructor() {
    this.details.addEventListener('toggle', this.unfold);
    this.details.append(this.notSent);
    this.node.append(
      this.bar.node,
      this.notice.node,
      this.running.node,
      this.sites.node,
      this.notObserved,
      this.details,
      this.problem,
      this.announced
    );
  }

  /** Updates the view; called ten times a second. Never throws. */
  update(progress: unknown, threads: readonly string[]): void {
    this.guarded(() => {
      const [read, damage] = conform('Progress', progress, 'progress');
      this.render(read, threads);
      return damage;
    });
    this.notice.offer();
    if (this.node.isConnected && !this.placed) {
      this.placed = true;
      const look = remembered(this.node);
      this.details.open ||= look !== null && look.expanded && look.tab === CALLS;
    }
  }

  /** Shows the notice that the cell hangs, or removes it. Never throws. */
  tell(hang: unknown): void {
    this.guarded(() => {
      const [read, damage] = conform('Hang', hang, 'hang');
      this.notice.show(read);
      return damage;
    });
  }

  /** Adds calls, whose `variant` is an index of a site, to the timeline. Never throws. */
  append(raw: RawCalls & { base_ns: number }): void {
    this.guarded(() => {
      appendRaw(this.store, raw, raw.base_ns);
      this.store.grown();
      return '';
    });
  }

  dispose(): void {
    this.details.removeEventListener('toggle', this.unfold);
    this.timeline?.dispose();
    this.timeline = null;
    this.node.remove();
  }

  private readonly unfold = (): void => {
    if (this.details.open && !this.timeline) {
      this.timeline = new Timeline(this.store);
      this.details.append(this.timeline.node);
    }
    this.leave(this.details.open);
  };

  /** Lets the host trace that replaces this view show what it shows. */
  private leave(timeline: boolean): void {
    const look = remembered(this.node) ?? NO_LOOK;
    const tab = timeline ? CALLS : look.tab === CALLS ? SITES : look.tab;
    remember(this.node, { ...look, expanded: true, tab });
  }

  /** Says what an action could not show: what it returns, or why it failed. */
  private guarded(action: () => string): void {
    let words = '';
    try {
      const damage = action();
      words = damage && `the progress is damaged: ${damage}`;
    } catch (error) {
      words = `cannot show progress: ${messageOf(error)}`;
    }
    this.problem.hidden = words === '';
    setText(this.problem, words && failedWords(words));
  }

  private render(progress: Progress, threads: readonly string[]): void {
    if (progress.elapsed_ns > LONG_NS && remembered(this.node) === null) {
      this.leave(false);
    }
    this.bar.update(progress);
    this.running.update(
      progress.running.map(call => ({
        title: runningWords(call),
        detail: stillRunning(call),
        alert: call.elapsed_ns >= SLOW_NS
      }))
    );
    const colours = coloursOf(progress.sites);
    this.sites.update(
      progress.sites.map((site, place) => ({
        title: `${site.function} · ${site.flavor} · ${site.where}`,
        detail: progressSiteWords(site),
        colour: colours[place]!,
        alert: toneOf(site.consequence) === 'error'
      }))
    );
    this.notSent.hidden = progress.not_sent === 0;
    setText(
      this.notSent,
      `${callWords(progress.not_sent)} are left out of the timeline to limit the load on the kernel`
    );
    this.notObserved.hidden = progress.not_observed === '';
    setText(this.notObserved, progress.not_observed);
    this.relabel(progress, colours, threads);
    this.store.nowNs = progress.since_first_ns;
    this.store.grown();
    const announced = this.announcer.next(progress);
    if (announced !== null) {
      setText(this.announced, announced);
    }
  }

  /** Adds new sites and threads to the timeline. */
  private relabel(
    progress: Progress,
    colours: readonly number[],
    threads: readonly string[]
  ): void {
    const sites = progress.sites.map(site => `${site.function}, ${site.where}`);
    const key = JSON.stringify([sites, colours, threads]);
    if (key !== this.labelled) {
      this.labelled = key;
      this.store.relabel(labelsWhile(sites, colours, threads));
    }
  }
}

function labelsWhile(
  sites: readonly string[],
  colours: readonly number[],
  threads: readonly string[]
): Labels {
  return {
    sites,
    colours,
    siteOfVariant: sites.map((_, place) => place),
    variants: [],
    threads: [...threads],
    errors: [],
    samples: new Map(),
    notFinite: new Map(),
    compilations: []
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'the data is malformed';
}
