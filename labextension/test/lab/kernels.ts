/** Fakes of JupyterLab's kernel connection and session context. */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel } from '@jupyterlab/services';

type Slot<T> = (sender: unknown, value: T) => void;

class FakeSignal<T> {
  private readonly slots: [slot: Slot<T>, of: unknown][] = [];

  connect(slot: Slot<T>, of?: unknown): void {
    this.slots.push([slot, of]);
  }

  disconnect(slot: Slot<T>, of?: unknown): void {
    const place = this.slots.findIndex(([other, owner]) => other === slot && owner === of);
    this.slots.splice(place, 1);
  }

  emit(value: T): void {
    [...this.slots].forEach(([slot, of]) => slot.call(of, this, value));
  }
}

class FakeComm {
  isDisposed = false;
  onMsg: (message: unknown) => void = () => undefined;
  onClose: () => void = () => undefined;
  readonly sent: unknown[] = [];

  send(data: unknown): void {
    this.sent.push(data);
  }

  dispose(): void {
    this.isDisposed = true;
  }
}

export class FakeKernel {
  readonly statusChanged = new FakeSignal<string>();
  readonly connectionStatusChanged = new FakeSignal<string>();
  connectionStatus = 'connected';
  status = 'idle';
  isDisposed = false;
  handleComms = true;
  readonly comms: FakeComm[] = [];

  get connection(): Kernel.IKernelConnection {
    return this as unknown as Kernel.IKernelConnection;
  }

  get comm(): FakeComm {
    return this.comms.at(-1)!;
  }

  known: Record<string, unknown> = { jupyter_jaxcb: { target_name: 'jupyter_jaxcb' } };

  /** Replies synchronously, so that tests need not wait. */
  requestCommInfo(): PromiseLike<unknown> {
    const reply = { content: { status: 'ok', comms: this.known } };
    return { then: (done: any) => done(reply) };
  }

  createComm(): FakeComm {
    if (this.comms.some(comm => !comm.isDisposed)) {
      throw new Error('Comm is already created');
    }
    this.comms.push(new FakeComm());
    return this.comm;
  }

  sends(data: unknown, buffers: unknown[] = []): void {
    this.comm.onMsg({ content: { data }, buffers });
  }

  restart(): void {
    this.statusChanged.emit('restarting');
    this.comm.dispose();
    this.connectionStatusChanged.emit('connecting');
    this.connectionStatusChanged.emit('connected');
  }
}

export class FakeSession {
  readonly kernelChanged = new FakeSignal<{ newValue: unknown }>();
  readonly disposed = new FakeSignal<void>();
  session: { kernel: FakeKernel | null } | null;

  constructor(kernel: FakeKernel | null = null) {
    this.session = { kernel };
  }

  get context(): ISessionContext {
    return this as unknown as ISessionContext;
  }
}
