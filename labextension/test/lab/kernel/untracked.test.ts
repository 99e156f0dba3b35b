import { expect, test } from 'vitest';
import { withSubshells } from '../../../src/lab/kernel/untracked.js';

test('requests about subshells join the untracked ones, each once', () => {
  const once = withSubshells('["status"]');
  expect(JSON.parse(once)).toContain('status');
  expect(JSON.parse(once)).toContain('create_subshell_request');
  expect(withSubshells(once)).toBe(once);
});

test('a page without the option gets it', () => {
  expect(JSON.parse(withSubshells(''))).toContain('delete_subshell_request');
});
