/**
 * The plugins. Only this module imports code of JupyterLab; the others import types.
 *
 * Voila loads them too, but has no notebook and no CodeMirror: so they require nothing, do nothing
 * without a notebook, and load modules that use CodeMirror when they need them.
 */

import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, ISessionContextDialogs, Notification } from '@jupyterlab/apputils';
import type { ICodeCellModel } from '@jupyterlab/cells';
import { IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { PageConfig } from '@jupyterlab/coreutils';
import { INotebookTracker, NotebookActions, type NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { LabIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import { surround, type Surroundings } from './around.js';
import { cellSource } from './badges/cell.js';
import { ICON } from './icon.js';
import type { Place } from './badges/notes.js';
import { cellsOf } from './panel/cells.js';
import { Panel } from './panel/panel.js';
import { Hub } from './kernel/service.js';
import type { Snapshot } from './kernel/snapshot.js';
import { UNTRACKED, withSubshells } from './kernel/untracked.js';
import { ownerOf, type Owner } from './lines/owner.js';
import { removeEnded, replaceUnfinished } from './live-outputs.js';
import { showInTrace } from './lines/trace.js';
import { insertCheck, writeMagic, writeProposal } from './lines/write.js';
import { listenForSave } from './save-key.js';
import { Switch } from './switch.js';
import type { Proposal, Site } from '../view/data/schema.js';
import type { Target } from '../view/sites/row.js';
import type { Magic } from '../view/view.js';
import { offerRestart } from '../view/restart.js';

const CATEGORY = 'JAX callbacks';
const OPEN_PANEL = 'jupyter-jaxcb:open-panel';
const SHOW_LINE = 'jupyter-jaxcb:show-line';
const TOGGLE_BADGES = 'jupyter-jaxcb:toggle-badges';
const BRIEFLY = { autoClose: 8_000 };

const icon = new LabIcon({ name: 'jupyter-jaxcb:callbacks', svgstr: ICON });
const hub = new Hub();
const badgesShown = new Switch(true);

/** Shows a place of a snapshot in a host trace, or in the panel; set by the panel's plugin. */
let open = (_: object, _from: Snapshot, _place: Place, _inPanel: boolean): unknown => undefined;

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-jaxcb:plugin',
  description: 'Receives data about JAX callbacks from the kernels of notebooks.',
  autoStart: true,
  optional: [INotebookTracker, ISettingRegistry, ICommandPalette, ISessionContextDialogs],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker | null,
    settings: ISettingRegistry | null,
    palette: ICommandPalette | null,
    dialogs: ISessionContextDialogs | null
  ) => {
    if (!tracker) {
      return;
    }
    PageConfig.setOption(UNTRACKED, withSubshells(PageConfig.getOption(UNTRACKED)));
    follow(tracker, panel => {
      const state = stateOf(panel);
      state.cells = cellsOf(panel);
      hub.follow(panel.context.model.sharedModel, panel.sessionContext);
      void panel.context.ready.then(() => state.notify());
      replaceUnfinished(panel);
    });
    NotebookActions.executed.connect((_, { cell, notebook }) => {
      if (cell.model.type === 'code') {
        removeEnded(cell.model as ICodeCellModel);
        hub.state(notebook.model?.sharedModel ?? notebook).notify(); // the saved traces
      }
    });
    surround(surroundingsIn(app, tracker));
    if (dialogs) {
      offerRestart(node => restartIn(tracker, dialogs, node));
    }
    listenForSave(() => void app.commands.execute('docmanager:save'));
    const setting = settings && badgeSetting(settings);
    app.commands.addCommand(TOGGLE_BADGES, {
      label: 'Show Badges in the Code',
      isToggled: () => badgesShown.on,
      execute: () => (setting ? setting(!badgesShown.on) : badgesShown.turn(!badgesShown.on))
    });
    badgesShown.listen(() => app.commands.notifyCommandChanged(TOGGLE_BADGES));
    palette?.addItem({ command: TOGGLE_BADGES, category: CATEGORY });
  }
};

const badgePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-jaxcb:badges',
  description: 'Shows host calls and elided callbacks at the end of lines of code.',
  autoStart: true,
  optional: [IEditorExtensionRegistry],
  activate: async (_: JupyterFrontEnd, registry: IEditorExtensionRegistry | null) => {
    if (!registry) {
      return;
    }
    const [{ badges }, { flashes }] = await editing();
    registry.addExtension({
      name: 'jupyter-jaxcb:badges',
      factory: ({ model }) => {
        const source = cellSource(hub, model.sharedModel, badgesShown, (...where) => open(...where));
        const instance = source && [badges(source), flashes];
        return instance && { instance: () => instance, reconfigure: () => null };
      }
    });
  }
};

const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-jaxcb:panel',
  description: 'Adds a side panel with every JAX callback of the current notebook.',
  autoStart: true,
  optional: [INotebookTracker, ILayoutRestorer, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null
  ) => {
    if (!tracker) {
      return;
    }
    const panel = new Panel((cell, line, source) => {
      const current = tracker.currentWidget;
      if (current) {
        void jump(app, { panel: current, cell: -1 }, { cell, line, source, elsewhere: false });
      }
    });
    const widget = panelWidget(panel);
    app.shell.add(widget, 'right', { rank: 900 });
    restorer?.add(widget, widget.id);
    const show = (current: NotebookPanel | null): void =>
      panel.follow(current && stateOf(current), current ? cellsOf(current) : undefined);
    tracker.currentChanged.connect((_, current) => show(current));
    show(tracker.currentWidget);
    follow(tracker, ({ content }) =>
      content.modelContentChanged.connect(() => widget.isVisible && panel.refreshSoon())
    );
    open = async (notebook, snapshot, place, inPanel) => {
      const opened = tracker.find(({ context }) => context.model.sharedModel === notebook)!;
      const site = 'site' in place && !inPanel ? snapshot.sites[place.site] : undefined;
      if (!site || !(await showInTrace(opened, site))) {
        app.shell.activateById(widget.id);
        show(opened);
        panel.show(place, snapshot);
      }
    };
    for (const inPanel of [false, true]) {
      const label = `Show This Line in the ${inPanel ? 'JAX Callbacks Panel' : 'Host Trace'}`;
      const command = `${SHOW_LINE}${inPanel ? '-in-panel' : ''}`;
      app.commands.addCommand(command, { label, execute: () => showLine(tracker, inPanel) });
      palette?.addItem({ command, category: CATEGORY });
    }
    app.commands.addCommand(OPEN_PANEL, {
      label: 'Show JAX Callbacks Panel',
      icon,
      execute: () => app.shell.activateById(widget.id)
    });
    palette?.addItem({ command: OPEN_PANEL, category: CATEGORY });
  }
};

function follow(tracker: INotebookTracker, each: (panel: NotebookPanel) => void): void {
  tracker.widgetAdded.connect((_, panel) => each(panel));
  tracker.forEach(each);
}

/** The modules that use CodeMirror. */
const editing = () => Promise.all([import('./badges/badges.js'), import('./lines/reveal.js')]);

/** Shows the line of the cursor as a click on its badge does. */
async function showLine(tracker: INotebookTracker, inPanel: boolean): Promise<void> {
  const [{ openAtCursor }, { editorOf }] = await editing();
  const cell = tracker.activeCell;
  const view = cell && editorOf(cell);
  if (!view || !openAtCursor(view.state, inPanel)) {
    Notification.info('The line of the cursor has no badge.', BRIEFLY);
  }
}

/** What asks the user and restarts the kernel of the notebook that `node` is in, if one runs. */
function restartIn(
  tracker: INotebookTracker,
  dialogs: ISessionContextDialogs,
  node: Element
): (() => void) | null {
  const context = tracker.find(panel => panel.node.contains(node))?.sessionContext;
  return context?.session?.kernel ? () => void dialogs.restart(context) : null;
}

function surroundingsIn(app: JupyterFrontEnd, tracker: INotebookTracker): Surroundings {
  return output => {
    const find = (): Owner | null => ownerOf(tracker.filter(() => true), output);
    return {
      reveal: target => {
        const owner = find();
        if (owner) {
          void jump(app, owner, target);
        } else {
          Notification.info('This output is not part of an open notebook.', BRIEFLY);
        }
      },
      cell: () => {
        const owner = find();
        const model = owner?.panel.content.widgets[owner.cell]?.model;
        return model ? `${owner.panel.context.path} ${model.id}` : '';
      },
      openTab: widget => openTab(app, find(), widget),
      apply: (site, proposal) => apply(find(), site, proposal),
      rerun: magic => void rerun(find(), magic),
      save: (id, suffix) => void save(find(), id, suffix),
      everything: async id => {
        const owner = find();
        return owner ? stateOf(owner.panel).everything(id) : null;
      }
    };
  };
}

function openTab(app: JupyterFrontEnd, owner: Owner | null, widget: Widget): void {
  const number = owner && (owner.panel.content.widgets[owner.cell]?.model as ICodeCellModel);
  widget.title.label = `Host trace [${number?.executionCount ?? ' '}]`;
  widget.title.caption = owner?.panel.context.path ?? '';
  widget.title.icon = icon;
  app.shell.add(widget, 'main', { mode: 'tab-after' });
  app.shell.activateById(widget.id);
}

/** Writes a proposal into the code; false: it is copied instead. */
async function apply(owner: Owner | null, site: Site, proposal: Proposal): Promise<boolean> {
  const snapshot = owner && stateOf(owner.panel).received.snapshot;
  const words = owner && (await writeProposal(owner, snapshot, site, proposal));
  const check = { label: 'Insert %jax_check', callback: () => owner && insertCheck(owner, site) };
  if (words) {
    Notification.success(words, { autoClose: 30_000, actions: [check] });
  } else {
    const [option] = proposal;
    await navigator.clipboard.writeText(option);
    const why = `it cannot be written into the line of ${site.function}, or is there already`;
    Notification.info(`${option} is copied: ${why}.`, BRIEFLY);
  }
  return Boolean(words);
}

async function rerun(owner: Owner | null, magic: Magic): Promise<void> {
  if (owner && !writeMagic(owner, magic)) {
    const why = 'no magic can run a cell with await';
    Notification.info(`Not run: ${why}. Move the other lines to a cell of their own.`, BRIEFLY);
  } else if (owner) {
    Notification.info(`The cell now has ${magic}; Ctrl+Z in it removes that.`, BRIEFLY);
    await NotebookActions.run(owner.panel.content, owner.panel.sessionContext);
  }
}

/** Downloads a recording as a file that the kernel writes. */
async function save(owner: Owner | null, id: string, suffix: string): Promise<void> {
  const data = owner && (await stateOf(owner.panel).file(id, suffix));
  if (!data) {
    Notification.info('The kernel no longer has this recording: run the cell again.', BRIEFLY);
    return;
  }
  const number = (owner.panel.content.widgets[owner.cell]?.model as ICodeCellModel).executionCount;
  const name = owner.panel.context.path.split('/').at(-1)!.replace(/\.ipynb$/, '');
  const url = URL.createObjectURL(new Blob([data as DataView<ArrayBuffer>]));
  const link = Object.assign(document.createElement('a'), { href: url, download: `${name}-${number}${suffix}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000); // after the download has begun
}

async function jump(app: JupyterFrontEnd, { panel, cell }: Owner, target: Target): Promise<void> {
  app.shell.activateById(panel.id);
  const [, { reveal }] = await editing();
  const doubt = await reveal(panel, cell, target);
  if (doubt) {
    Notification.info(doubt, BRIEFLY);
  }
}

function stateOf(panel: NotebookPanel) {
  return hub.state(panel.context.model.sharedModel);
}

class PanelWidget extends Widget {
  constructor(private readonly panel: Panel) {
    super({ node: panel.node });
  }

  protected override onAfterShow(): void {
    this.panel.refreshSoon(); // it does not follow changes of cells while it is hidden
  }
}

function panelWidget(panel: Panel): Widget {
  const widget = new PanelWidget(panel);
  widget.id = 'jupyter-jaxcb-panel';
  widget.title.icon = icon;
  widget.title.caption = 'JAX callbacks';
  widget.disposed.connect(() => panel.dispose());
  return widget;
}

/** Keeps the switch in sync with the setting; returns a function that changes the setting. */
function badgeSetting(registry: ISettingRegistry): (on: boolean) => Promise<void> {
  const loaded = registry.load(plugin.id);
  const read = (settings: ISettingRegistry.ISettings): void =>
    badgesShown.turn(settings.composite['badges'] !== false);
  loaded.then(
    settings => {
      read(settings);
      settings.changed.connect(read);
    },
    (error: unknown) => console.warn('jupyter_jaxcb: no settings', error)
  );
  return async on => (await loaded).set('badges', on);
}

export default [plugin, badgePlugin, panelPlugin];
