/** The line to one kernel: a comm that the kernel never opens, so both ends may come late. */

import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { Everything } from '../../view/view.js';
import { PROTOCOL, readMessage, type Answer, type Snapshot } from './snapshot.js';

const NAME = 'jupyter_jaxcb'; // both the comm's id and its target
const PATIENCE_MS = 10_000;

/** What a kernel has told so far. */
export interface Told {
  readonly snapshot: Snapshot | null;
  readonly trouble: string; // why there is no telling; mostly empty
}

export const NOTHING: Told = { snapshot: null, trouble: '' };

/** Listens to one kernel connection through restarts and lost connections. */
export class KernelLink {
  told: Told = NOTHING;
  private comm: Kernel.IComm | null = null;
  private readonly waiting = new Set<(answer: Answer | null) => void>();

  constructor(
    private readonly kernel: Kernel.IKernelConnection,
    private readonly changed: () => void
  ) {
    kernel.statusChanged.connect(this.onStatus, this);
    kernel.connectionStatusChanged.connect(this.onConnection, this);
    this.listen();
    this.onConnection(kernel, kernel.connectionStatus);
  }

  /** The full recording of that id; null if the kernel does not give it in ten seconds. */
  everything(id: string): Promise<Everything | null> {
    return new Promise(resolve => {
      const settle = (answer: Answer | null): void => {
        if (answer === null || answer.id === id) {
          clearTimeout(patience);
          this.waiting.delete(settle);
          resolve(answer && answer.facts !== null ? answer : null);
        }
      };
      const patience = setTimeout(() => settle(null), PATIENCE_MS);
      this.waiting.add(settle);
      if (!this.send({ type: 'recording', id })) {
        settle(null);
      }
    });
  }

  /** Hangs up on this side only: the kernel's end serves other front ends too. */
  dispose(): void {
    this.kernel.statusChanged.disconnect(this.onStatus, this);
    this.kernel.connectionStatusChanged.disconnect(this.onConnection, this);
    this.settleAll();
    this.comm?.dispose();
    this.comm = null;
  }

  private onStatus(_: Kernel.IKernelConnection, status: Kernel.Status): void {
    if (['restarting', 'autorestarting', 'dead'].includes(status)) {
      this.tell(NOTHING);
      this.settleAll();
    }
  }

  // A restart disposes all comms of the connection, and ends with a new connection.
  private onConnection(_: Kernel.IKernelConnection, status: Kernel.ConnectionStatus): void {
    if (status === 'connected') {
      this.listen();
      this.greet();
    }
  }

  /** Asks for a first telling, of a kernel that has the other end: others would log a warning. */
  private greet(): void {
    this.kernel.requestCommInfo({ target_name: NAME }).then(
      ({ content }) => {
        if (content.status === 'ok' && NAME in content.comms) {
          this.send({ type: 'hello', protocol: PROTOCOL });
        }
      },
      () => undefined // the connection is lost: there is another greeting with the next one
    );
  }

  private listen(): void {
    if ((this.comm && !this.comm.isDisposed) || !this.kernel.handleComms || this.gone) {
      return;
    }
    const comm = this.kernel.createComm(NAME, NAME);
    // Else JupyterLab has the kernel start a thread for this comm.
    Object.assign(comm, { commsOverSubshells: 'disabled' });
    comm.onMsg = message => this.onMessage(message);
    comm.onClose = () => this.onClose();
    this.comm = comm;
  }

  // JupyterLab disposes the comm after this; only then its id is free again.
  private onClose(): void {
    this.comm = null;
    this.tell(NOTHING);
    setTimeout(() => this.listen());
  }

  private onMessage(message: KernelMessage.ICommMsgMsg): void {
    const read = readMessage(message.content.data, message.buffers);
    if (read.type === 'recording') {
      [...this.waiting].forEach(settle => settle(read.answer));
    } else if (read.type === 'snapshot') {
      this.tell({ snapshot: read.snapshot, trouble: '' });
    } else {
      this.tell(read.type === 'trouble' ? { snapshot: null, trouble: read.text } : NOTHING);
    }
  }

  private get gone(): boolean {
    return this.kernel.isDisposed || this.kernel.status === 'dead';
  }

  private send(data: { type: string; id?: string; protocol?: number }): boolean {
    if (!this.comm || this.comm.isDisposed || this.gone) {
      return false;
    }
    this.comm.send(data);
    return true;
  }

  private settleAll(): void {
    [...this.waiting].forEach(settle => settle(null));
  }

  private tell(told: Told): void {
    this.told = told;
    this.changed();
  }
}
