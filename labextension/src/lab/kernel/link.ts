/** The connection to one kernel: a comm that is never opened, so either side may start first. */

import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { Everything } from '../../view/view.js';
import { SCHEMA } from '../../view/data/schema.js';
import { readMessage, type Message, type Snapshot } from './snapshot.js';

const NAME = 'jupyter_jaxcb'; // both the comm's id and its target

/** What is sent to a kernel. */
type Request = {
  readonly type: 'hello' | 'recording' | 'file';
  readonly id?: string;
  readonly suffix?: string;
  readonly schema?: number;
};

/** The latest state received from a kernel. */
export interface Received {
  readonly snapshot: Snapshot | null;
  readonly trouble: string; // why the kernel's messages cannot be read; usually empty
}

export const NOTHING: Received = { snapshot: null, trouble: '' };

/** Listens to one kernel connection through restarts and lost connections. */
export class KernelLink {
  received: Received = NOTHING;
  private comm: Kernel.IComm | null = null;
  private readonly waiting = new Set<(message: Message | null) => void>();

  constructor(
    private readonly kernel: Kernel.IKernelConnection,
    private readonly changed: () => void
  ) {
    kernel.statusChanged.connect(this.onStatus, this);
    kernel.connectionStatusChanged.connect(this.onConnection, this);
    this.listen();
    this.onConnection(kernel, kernel.connectionStatus);
  }

  /** The full recording with that id, or only the runs of its cell, when the kernel is not busy; null if it has neither, or ends. */
  everything(id: string): Promise<Everything | null> {
    return this.request({ type: 'recording', id }, message => {
      const reply = message.type === 'recording' && message.reply.id === id && message.reply;
      return reply && (reply.facts !== null || reply.runs !== null || null) && reply;
    });
  }

  /** The recording with that id as a file with that suffix; null if the kernel has it no longer, or ends. */
  file(id: string, suffix: string): Promise<DataView | null> {
    return this.request(
      { type: 'file', id, suffix },
      message => message.type === 'file' && message.id === id && message.suffix === suffix && message.data
    );
  }

  /** Sends a request, and waits for the message that answers it: until `answer` returns no false. */
  private request<T>(
    data: Request,
    answer: (message: Message) => T | null | false
  ): Promise<T | null> {
    return new Promise(resolve => {
      const settle = (message: Message | null): void => {
        const reply = message && answer(message);
        if (reply !== false) {
          this.waiting.delete(settle);
          resolve(reply);
        }
      };
      this.waiting.add(settle);
      if (!this.send(data)) {
        settle(null);
      }
    });
  }

  /** Closes this side only: the kernel's side serves other front ends too. */
  dispose(): void {
    this.kernel.statusChanged.disconnect(this.onStatus, this);
    this.kernel.connectionStatusChanged.disconnect(this.onConnection, this);
    this.settleAll();
    this.comm?.dispose();
    this.comm = null;
  }

  private onStatus(_: Kernel.IKernelConnection, status: Kernel.Status): void {
    if (['restarting', 'autorestarting', 'dead'].includes(status)) {
      this.receive(NOTHING);
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

  /** Requests a snapshot if the kernel has registered the comm; other kernels would log a warning. */
  private greet(): void {
    this.kernel.requestCommInfo({ target_name: NAME }).then(
      ({ content }) => {
        if (content.status === 'ok' && NAME in content.comms) {
          this.send({ type: 'hello', schema: SCHEMA });
        }
      },
      () => undefined // the connection is lost; the next connection sends another request
    );
  }

  private listen(): void {
    if ((this.comm && !this.comm.isDisposed) || !this.kernel.handleComms || this.gone) {
      return;
    }
    const comm = this.kernel.createComm(NAME, NAME);
    // Otherwise JupyterLab makes the kernel start a thread for this comm.
    Object.assign(comm, { commsOverSubshells: 'disabled' });
    comm.onMsg = message => this.onMessage(message);
    comm.onClose = () => this.onClose();
    this.comm = comm;
  }

  // JupyterLab disposes the comm after this call; only then is its id free again.
  private onClose(): void {
    this.comm = null;
    this.receive(NOTHING);
    setTimeout(() => this.listen());
  }

  private onMessage(message: KernelMessage.ICommMsgMsg): void {
    const read = readMessage(message.content.data, message.buffers);
    if (read.type === 'recording' || read.type === 'file') {
      [...this.waiting].forEach(settle => settle(read));
    } else if (read.type === 'snapshot') {
      this.receive({ snapshot: read.snapshot, trouble: '' });
    } else {
      this.receive(read.type === 'trouble' ? { snapshot: null, trouble: read.text } : NOTHING);
    }
  }

  private get gone(): boolean {
    return this.kernel.isDisposed || this.kernel.status === 'dead';
  }

  private send(data: Request): boolean {
    if (!this.comm || this.comm.isDisposed || this.gone) {
      return false;
    }
    this.comm.send(data);
    return true;
  }

  private settleAll(): void {
    [...this.waiting].forEach(settle => settle(null));
  }

  private receive(received: Received): void {
    this.received = received;
    this.changed();
  }
}
