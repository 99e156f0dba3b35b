/** Which notebook hears which kernel. */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel } from '@jupyterlab/services';
import type { Everything } from '../../view/view.js';
import { KernelLink, NOTHING, type Told } from './link.js';

/** What is known of one notebook: what its kernel told, whichever kernel that is just now. */
export class NotebookState {
  private link: KernelLink | null = null;
  private kernel: Kernel.IKernelConnection | null = null;
  private readonly listeners = new Set<() => void>();

  get told(): Told {
    return this.link?.told ?? NOTHING;
  }

  get hasKernel(): boolean {
    return this.kernel !== null;
  }

  /** Calls `listener` after every change, until the function it returns is called. */
  on(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Listens to this kernel from here on. */
  hear(kernel: Kernel.IKernelConnection | null): void {
    if (kernel === this.kernel) {
      return;
    }
    this.link?.dispose();
    this.kernel = kernel;
    this.link = kernel && new KernelLink(kernel, () => this.tell());
    this.tell();
  }

  /** The full recording of that id, if the kernel still has it. */
  async everything(id: string): Promise<Everything | null> {
    return this.link?.everything(id) ?? null;
  }

  private tell(): void {
    for (const listener of [...this.listeners]) {
      listener();
    }
  }
}

/** A notebook is told apart by its shared model: copies of a file have the same cell ids. */
export class Hub {
  private readonly states = new WeakMap<object, NotebookState>();
  private readonly followed = new WeakSet<ISessionContext>();

  /** Of the notebook with this shared model; empty until its session is known. */
  state(notebook: object): NotebookState {
    const known = this.states.get(notebook) ?? new NotebookState();
    this.states.set(notebook, known);
    return known;
  }

  /** From here on the notebook hears the kernel of this session, also after it is changed. */
  follow(notebook: object, session: ISessionContext): void {
    if (this.followed.has(session)) {
      return; // another view of the same notebook
    }
    this.followed.add(session);
    const state = this.state(notebook);
    session.kernelChanged.connect((_, { newValue }) => state.hear(newValue));
    session.disposed.connect(() => state.hear(null));
    state.hear(session.session?.kernel ?? null);
  }
}
