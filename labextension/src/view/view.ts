/** The view of a complete recording: one line that expands to its sites and calls. */

import { button, h } from './dom/elements.js';
import { BadRecording, parseRecording, type Recording } from './data/parse/recording.js';
import type { RawCalls } from './data/raw.js';
import { failedWords, numberWords, timeWords, warningWords } from './data/words.js';
import { Comparison } from './compare/comparison.js';
import { parseHistory, trendsOf } from './compare/history.js';
import { runOf, type Run } from './compare/run.js';
import { SiteList } from './sites/sites.js';
import { writeButtonOf } from './sites/details.js';
import type { SiteActions, Target } from './sites/row.js';
import type { Site } from './data/schema.js';
import { CALLS, NO_CALLS_LOOK, SITES, TIME, type Look } from './remembered.js';
import { ProfilePanel } from './profile/panel.js';
import { summaryLine } from './sites/summary.js';
import { CallsPanel } from './calls/panel.js';
import { viewFooter } from './footer.js';
import { Tabs } from './dom/tabs.js';

export type { RawCalls } from './data/raw.js';

/** What a cell runs below, to be seen better. */
export type Magic = '%%jax_profile' | '%%jax_record --jax';

/** Services of the host application; each may be absent. */
export interface Around {
  /** Jumps to a line of a cell; absent: no links. */
  readonly reveal?: ((target: Target) => void) | undefined;
  /** Writes an option that advice proposes into the code; absent: no buttons. */
  readonly apply?: SiteActions['apply'];
  /** Runs the cell again below a magic; absent: no buttons. */
  readonly rerun?: ((magic: Magic) => void) | undefined;
  /** Downloads the recording as a file with that suffix; absent: no buttons. */
  readonly save?: ((id: string, suffix: string) => void) | undefined;
  /** Opens the recording in a tab of its own; absent: no button. */
  readonly openTab?: (() => void) | undefined;
  /** Requests the full recording from the kernel; null: not available. */
  readonly everything?: (id: string) => Promise<Everything | null>;
  /** Whether the next run of the cell gets the look of this view, so that runs can be compared. */
  readonly remembers?: boolean;
}

export interface Everything {
  readonly facts: unknown;
  readonly measured: unknown;
  readonly calls: RawCalls | null; // null: the kernel no longer has the recording
  readonly runs?: unknown; // of the cell, see `parseHistory`
}

/** The checked data that a view shows. */
interface Shown extends Recording {
  readonly raw: RawCalls | null;
}


const FILES = [
  ['.csv', 'Save as CSV'],
  ['.perfetto.json', 'Save for Perfetto']
] as const;
const RECORD_JAX = '%%jax_record --jax';

// A counter alone is not unique, because a page may contain several bundles of this library.
const PAGE = Math.random().toString(36).slice(2, 8);
let views = 0;

export class TraceView {
  readonly node = h('div', { class: 'jaxcb-view' });
  private readonly id = `jaxcb-${PAGE}-${++views}`;
  private readonly button = h('button', {
    class: 'jaxcb-disclosure',
    type: 'button',
    'aria-expanded': 'false',
    'aria-controls': `${this.id}-body`
  });
  private readonly damage = h('p', { class: 'jaxcb-message', role: 'note' });
  private readonly body = h('div', { class: 'jaxcb-body', id: `${this.id}-body`, hidden: true });
  private readonly sitesPanel = h('div');
  private readonly callsPanel = h('div');
  private readonly timePanel = h('div');
  private readonly footer = h('div');
  private readonly tabs = new Tabs(
    this.id,
    'host trace',
    [
      { name: SITES, panel: this.sitesPanel },
      { name: CALLS, panel: this.callsPanel },
      { name: TIME, panel: this.timePanel }
    ],
    name => this.openTab(name)
  );
  private shown: Shown | null = null;
  private sites: SiteList | null = null;
  private calls: CallsPanel | null = null;
  private profile: ProfilePanel | null = null;
  private readonly comparison = new Comparison();
  private readonly folds = new Map<number, boolean>(); // of sites: the kernel sends them again
  private wanted = NO_CALLS_LOOK; // for the calls, when they are shown
  private pointed: ((site: Site) => boolean) | null = null; // which site `showSite` showed
  private runs: readonly Run[] = []; // of the cell, up to the shown one
  private stale = true; // the body does not match `shown`
  private arranged = false; // by the user, or for a profile: keep tab and expansion
  private requested = false;
  private generation = 0;
  private released: Promise<void> | null = null; // when the last press of a pointer has ended

  /** Args: around: what the host application offers now. */
  constructor(private readonly around: () => Around = () => ({})) {
    this.button.addEventListener('click', this.press);
    this.node.addEventListener('pointerdown', () => (this.released = release()));
    this.body.append(this.comparison.node, this.tabs.node, this.footer);
  }

  /** Shows a recording, or a message if it is malformed. Never throws. */
  show(facts: unknown, measured: unknown, raw: RawCalls | null = null): void {
    this.generation += 1;
    this.requested = false;
    this.runs = this.comparison.history = [];
    try {
      this.replace(read(facts, measured, raw));
    } catch (error) {
      const why = error instanceof BadRecording ? error.message : 'the data is malformed.';
      this.clear();
      const words = failedWords(`cannot show this host trace: ${why}`);
      this.node.replaceChildren(h('p', { class: 'jaxcb-message', role: 'note' }, words));
    }
  }

  /** What the user chose, to restore it when the cell has run again. */
  get look(): Look {
    const calls = this.calls?.look ?? this.wanted;
    const { pinned, compared } = this.comparison;
    const profiled = this.shown?.measured.profile !== undefined;
    return { expanded: this.expanded, tab: this.tabs.selected, profiled, calls, pinned, compared };
  }

  /** Shows the recording as the user left an earlier one. */
  restore({ expanded, tab, profiled, calls, pinned, compared }: Look): void {
    this.comparison.pinned = pinned;
    this.comparison.compared = compared;
    this.wanted = calls;
    this.calls?.restore(calls);
    this.requestForPinned();
    if (this.shown?.measured.profile && !profiled) {
      return; // the user has not seen a profile of this cell, and wants to
    }
    this.arranged = true;
    if (expanded !== this.expanded) {
      this.toggle();
    }
    if (this.tabs.hasBar) {
      this.tabs.select(tab);
    }
  }

  expand(): void {
    if (!this.expanded) {
      this.toggle();
    }
  }

  /** Opens the view at the first of these sites, marks its row and focuses it; false: none. */
  showSite(wanted: (site: Site) => boolean): boolean {
    const found = this.shown?.facts.sites.findIndex(wanted) ?? -1;
    if (found >= 0) {
      this.pointed = wanted;
      this.expand();
      this.tabs.select(SITES);
      this.sites?.show(found);
    }
    return found >= 0;
  }

  dispose(): void {
    this.generation += 1;
    this.button.removeEventListener('click', this.press);
    this.clear();
    this.node.remove();
  }

  private get expanded(): boolean {
    return !this.body.hidden;
  }

  /** Opens and closes the view; a click on a problem of the headline shows its row. */
  private readonly press = (event: Event): void => {
    const pressed = event.target as Element;
    if (pressed.closest('[data-jax]')) {
      this.around().rerun?.(RECORD_JAX);
      return;
    }
    const named = pressed.closest('[data-site]')?.getAttribute('data-site');
    const site = this.shown?.facts.sites[Number(named ?? -1)];
    const same = ({ where, source, function: name }: Site): boolean =>
      where === site!.where && source === site!.source && name === site!.function;
    if (!site || !this.showSite(same)) {
      this.toggle();
    }
  };

  private readonly toggle = (): void => {
    this.arranged = true;
    this.body.hidden = this.expanded;
    this.button.setAttribute('aria-expanded', String(this.expanded));
    this.fill();
  };

  private replace(shown: Shown): void {
    const hadFocus = this.body.contains(document.activeElement);
    const onTab = hadFocus && document.activeElement?.getAttribute('role') === 'tab';
    this.clear();
    this.shown = shown;
    const { facts, measured, damage } = shown;
    const summary = summaryLine(facts, measured, this.around().rerun !== undefined);
    summary.append(this.comparison.words);
    this.button.replaceChildren(summary);
    this.comparison.show(runOf(facts, measured));
    if (!this.node.contains(this.button)) {
      this.node.replaceChildren(this.button, this.body);
    }
    this.damage.textContent = warningWords(`This output is damaged: ${damage}`);
    damage ? this.node.prepend(this.damage) : this.damage.remove();
    this.tabs.offer(tabsOf(shown));
    if (measured.profile && !this.arranged) {
      this.tabs.select(TIME);
      this.expand();
    }
    this.fill();
    this.requestForPinned();
    if (hadFocus && this.pointed && this.showSite(this.pointed)) {
      return;
    }
    if (hadFocus && (onTab || !this.body.contains(document.activeElement))) {
      (this.tabs.hasBar ? this.tabs : this.button).focus();
    }
  }

  private clear(): void {
    this.sites?.dispose();
    this.wanted = this.calls?.look ?? this.wanted;
    this.calls?.dispose();
    this.profile?.dispose();
    this.sites = this.calls = this.profile = this.shown = null;
    this.stale = true;
  }

  /** Builds the body when it is first shown. */
  private fill(): void {
    const { shown } = this;
    if (!this.expanded || !this.stale || !shown) {
      return;
    }
    this.stale = false;
    const { facts, measured, raw } = shown;
    const hasCalls = CallsPanel.has(measured, raw);
    const { apply, openTab, rerun, remembers, reveal, save } = this.around();
    const actions = {
      apply,
      reveal,
      select: hasCalls ? (row: number) => this.showCall(row) : undefined,
      filter: hasCalls ? (site: number | null) => this.showCallsOf(site) : undefined
    };
    this.sites = new SiteList(facts, actions, this.folds);
    this.sites.trace(trendsOf(this.runs, facts.sites));
    this.sitesPanel.replaceChildren(this.sites.node);
    if (hasCalls) {
      this.calls = new CallsPanel(facts, measured, raw, this.wanted);
      this.callsPanel.replaceChildren(this.calls.node);
    }
    if (measured.profile) {
      this.profile = new ProfilePanel(measured.profile, words =>
        writeButtonOf(facts.sites, words, apply)
      );
      this.timePanel.replaceChildren(this.profile.node);
      this.tabs.count(TIME, timeWords(measured.profile.wall_ns));
    }
    const footing = [
      rerun &&
        !measured.profile &&
        button({ class: 'jaxcb-link' }, () => rerun('%%jax_profile'), 'Profile this cell'),
      rerun &&
        facts.not_observed > 0 &&
        button({ class: 'jaxcb-link' }, () => rerun(RECORD_JAX), "Record JAX's callbacks"),
      openTab && button({ class: 'jaxcb-link' }, openTab, 'Open in a tab'),
      remembers && this.comparison.actions,
      ...(save && hasCalls && measured.id
        ? FILES.map(([suffix, words]) =>
            button({ class: 'jaxcb-link' }, () => save(measured.id, suffix), words)
          )
        : [])
    ];
    this.footer.replaceChildren(viewFooter(facts, measured, footing));
    const calls = facts.sites.reduce((sum, site) => sum + site.calls, 0);
    this.tabs.count(SITES, numberWords(facts.sites.length + facts.left_out));
    this.tabs.count(CALLS, numberWords(calls));
    this.openTab(this.tabs.selected);
  }

  private openTab(name: string): void {
    if (name === CALLS) {
      void this.calls?.open();
    }
    if (name !== TIME) {
      this.requestEverything();
    }
  }

  private showCallsOf(site: number | null): void {
    this.calls?.narrow(site);
    this.tabs.select(CALLS);
    this.tabs.focus();
  }

  private showCall(row: number): void {
    this.calls?.select(row);
    this.tabs.select(CALLS);
    this.tabs.focus();
  }

  /** A closed line is compared too, for which the kernel has the runs. */
  private requestForPinned(): void {
    if (this.comparison.pinned) {
      this.requestEverything();
    }
  }

  /** When sites or calls are first shown: the kernel may have sample values, and more calls than are saved. */
  private requestEverything(): void {
    const { shown, generation } = this;
    const { everything } = this.around();
    const wanted = this.expanded || this.comparison.pinned;
    if (!shown || !wanted || this.requested || !everything) {
      return;
    }
    const { id } = shown.measured;
    if (shown.raw || !id) {
      return;
    }
    this.requested = true;
    void fullRecording(everything(id)).then(async ({ all, runs }) => {
      await this.released; // a click would lose its element, and a drag its canvas
      if (generation === this.generation) {
        this.runs = runs;
        this.comparison.history = runs;
        all ? this.replace(all) : this.sites?.trace(trendsOf(runs, shown.facts.sites));
      }
    });
  }
}

/** Resolves when the pointer that is down is up, after the click that this makes. */
function release(): Promise<void> {
  return new Promise(resolve => {
    const ended = new AbortController();
    const end = (): void => {
      ended.abort();
      setTimeout(resolve);
    };
    for (const type of ['pointerup', 'pointercancel']) {
      document.addEventListener(type, end, { capture: true, signal: ended.signal });
    }
  });
}

/** The tabs with something to show. */
function tabsOf({ facts, measured, raw }: Shown): string[] {
  const { profile } = measured;
  const tabs: readonly (readonly [string, boolean])[] = [
    [SITES, facts.sites.length > 0 || !profile],
    [CALLS, facts.sites.length > 0 && CallsPanel.has(measured, raw)],
    [TIME, profile !== undefined]
  ];
  return tabs.filter(([, shown]) => shown).map(([name]) => name);
}

function read(facts: unknown, measured: unknown, raw: RawCalls | null): Shown {
  return { ...parseRecording(facts, measured), raw };
}

/** The full recording, null if it is not available for any reason, and the runs of its cell. */
async function fullRecording(
  sent: Promise<Everything | null>
): Promise<{ readonly all: Shown | null; readonly runs: readonly Run[] }> {
  const reply = await sent.catch(() => null);
  const runs = reply?.runs ? parseHistory(reply.runs) : [];
  try {
    return { all: reply?.calls ? read(reply.facts, reply.measured, reply.calls) : null, runs };
  } catch {
    return { all: null, runs };
  }
}
