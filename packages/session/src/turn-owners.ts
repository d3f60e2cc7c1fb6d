/** Who holds turns: names this process, and judges the names of others. */
export interface TurnOwners {
  /** Unique to this process, for people and for `stateOf`; at most 200 characters. */
  readonly self: string;
  /** `gone` only when it is certain that the owner cannot write any more. */
  stateOf(owner: string): "self" | "gone" | "unknown";
}
