/** A boolean that notifies its listeners when it changes. */
export class Switch {
  private readonly listeners = new Set<() => void>();

  constructor(private state: boolean) {}

  get on(): boolean {
    return this.state;
  }

  turn(on: boolean): void {
    if (on !== this.state) {
      this.state = on;
      [...this.listeners].forEach(listener => listener());
    }
  }

  /** Calls `listener` after every change; returns a function that removes it. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
