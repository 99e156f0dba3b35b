/** Something that is on or off, and tells when it is turned. */
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

  /** Calls `listener` after every turn, until the function it returns is called. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
