/** Names this process as a holder of turns, and judges the names of other processes. */
export interface TurnOwners {
  /** Identifies this process, for people and for `stateOf`; at most 200 characters. */
  readonly self: string;
  /** Returns `gone` only when it is certain that the owner cannot write any more. */
  stateOf(owner: string): "self" | "gone" | "unknown";
}
