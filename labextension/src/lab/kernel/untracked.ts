/**
 * Keeps a kernel "Busy" while a cell runs.
 *
 * JupyterLab starts a subshell for the first widget of a kernel, as the live view is. The kernel's
 * "idle" after that request would be shown as the status of the kernel (jupyterlab#10701).
 */

/** The option of the page with the types of the requests that do not change the status. */
export const UNTRACKED = 'untracked_message_types';

const SUBSHELLS = [
  'create_subshell_request',
  'delete_subshell_request',
  'list_subshell_request'
];

/** The value of the option with the requests about subshells added. */
export function withSubshells(untracked: string): string {
  const types = JSON.parse(untracked || '[]') as string[];
  return JSON.stringify([...new Set([...types, ...SUBSHELLS])]);
}
