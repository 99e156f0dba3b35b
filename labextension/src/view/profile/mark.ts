/** What the row below the pointer is about, which the pictures highlight. */

export interface Mark {
  readonly kind: number; // index into the kinds of the profile
  readonly part: number | null; // index into its parts; null: all of the kind
}
