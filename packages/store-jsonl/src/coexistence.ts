/**
 * What other programs do in an agent's folder, as the rest of the store needs it: OpenClaw changes sessions.json and moves
 * transcripts, pi makes them. Given to the sessions of an agent by the store.
 */
export interface Coexistence {
  /** What was taken over of what others write, for the index to keep. */
  readonly notes: Readonly<Record<string, string>>;
  /** Something was taken over that the index does not know of. */
  hasNewNotes: boolean;
  /** What is derived may still hold what was purged. */
  hasFinishedPurge: boolean;
  /** Takes over what others did: changes of sessions.json, and transcripts the log does not name. */
  take(): Promise<void>;
  /** Takes over what others changed in sessions.json. */
  takeView(): Promise<void>;
  /** As `takeView`, where OpenClaw was met and it was not done lately; null when there is nothing to wait for. */
  takeViewIfDue(): Promise<void> | null;
  /** As `Purges.finish`. */
  finishPurges(): Promise<void>;
  /** Runs what makes a transcript of ours: the folder is none to look through for it. Under the entries lock. */
  whileMaking(make: () => void): void;
  /** Nothing is to be taken from sessions.json as it was then. */
  noteView(seenAs: string | null): void;
  /** Whether everything was taken from sessions.json as it was then. */
  isViewTaken(seenAs: string): boolean;
}
