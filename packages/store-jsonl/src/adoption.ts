/**
 * Handles what other programs do in an agent's folder: OpenClaw changes sessions.json and moves transcripts, pi creates
 * them. The store passes an implementation to each agent, so that the agent's files do not depend on it.
 */
export interface AdoptionPort {
  /** Holds the fingerprints of the foreign changes that were merged, which the index stores for other processes. */
  readonly notes: Readonly<Record<string, string>>;
  hasNewNotes: boolean;
  /** Is true when derived files may still contain a purged session. */
  hasFinishedPurge: boolean;
  /** Merges the changes of other programs: sessions.json, and transcripts that the log does not name. */
  adopt(): Promise<void>;
  adoptEntries(): Promise<void>;
  finishPurges(): Promise<void>;
  /**
   * Runs `make`, which creates one of the store's own transcripts, without causing a new search of the folder. Call it
   * under the entries lock.
   */
  whileMaking(make: () => void): void;
  /** Notes that sessions.json with this fingerprint holds nothing to merge, so that it is not read again. */
  noteMirror(fingerprint: string | null): void;
  isMirrorTaken(fingerprint: string): boolean;
}
