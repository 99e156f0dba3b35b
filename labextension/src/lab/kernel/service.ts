/** Connects notebooks to their kernels. */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel } from '@jupyterlab/services';
import type { Everything } from '../../view/view.js';
import { NO_CELLS, type Cells } from '../panel/cells.js';
import type { Snapshot } from './snapshot.js';
import { KernelLink, NOTHING, type Received } from './link.js';

/** The state received from the current kernel of one notebook. */
export class NotebookState {
  private link: KernelLink | null = null;
  private kernel: Kernel.IKernelConnection | null = null;
  private savedNow: Snapshot | null = null;
  cells: Cells = NO_CELLS; // of the notebook
  private readonly listeners = new Set<() => void>();

  get received(): Received {
    return this.link?.received ?? NOTHING;
  }

  /** What the host traces in the notebook's outputs said at the last change. */
  get saved(): Snapshot {
    return (this.savedNow ??= this.cells.saved());
  }

  get hasKernel(): boolean {
    return this.kernel !== null;
  }

  /** Calls `listener` after every change; returns a function that removes it. */
  on(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Switches to this kernel. */
  connect(kernel: Kernel.IKernelConnection | null): void {
    if (kernel === this.kernel) {
      return;
    }
    this.link?.dispose();
    this.kernel = kernel;
    this.link = kernel && new KernelLink(kernel, () => this.notify());
    this.notify();
  }

  /** The full recording with that id, if the kernel still has it; waits for a kernel, which a page connects late when it loads. */
  async everything(id: string): Promise<Everything | null> {
    return (await this.linked()).everything(id);
  }

  /** The recording with that id as a file; null if the kernel no longer has it. */
  async file(id: string, suffix: string): Promise<DataView | null> {
    return (await this.linked()).file(id, suffix);
  }

  private linked(): Promise<KernelLink> {
    return new Promise(resolve => {
      const look = (): void => {
        if (this.link) {
          stop();
          resolve(this.link);
        }
      };
      const stop = this.on(look);
      look();
    });
  }

  /** Tells the listeners that something has changed. */
  notify(): void {
    this.savedNow = null;
    for (const listener of [...this.listeners]) {
      listener();
    }
  }
}

/** The states of all notebooks, by shared model: cell ids are equal in copies of a file. */
export class Hub {
  private readonly states = new WeakMap<object, NotebookState>();
  private readonly followed = new WeakSet<ISessionContext>();

  /** The state of the notebook with this shared model; empty until its session is known. */
  state(notebook: object): NotebookState {
    const known = this.states.get(notebook) ?? new NotebookState();
    this.states.set(notebook, known);
    return known;
  }

  /** Connects the notebook to the kernel of this session, also after the kernel changes. */
  follow(notebook: object, session: ISessionContext): void {
    if (this.followed.has(session)) {
      return; // another view of the same notebook
    }
    this.followed.add(session);
    const state = this.state(notebook);
    session.kernelChanged.connect((_, { newValue }) => state.connect(newValue));
    session.disposed.connect(() => state.connect(null));
    state.connect(session.session?.kernel ?? null);
  }
}
