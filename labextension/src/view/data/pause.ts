/** Splits long work into tasks, between which the page handles input and draws. */

export const AT_ONCE = 200_000; // calls that are processed in one task

/** Resolves in a new task. */
export function pause(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve));
}
