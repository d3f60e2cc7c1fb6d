import type { AgentAddress, AgentFolder } from "./agent-folder.ts";
import type { AgentPlace } from "./agent-place.ts";
import type { EntriesLog } from "./entries-log.ts";
import type { HeldSession } from "./held-session.ts";
import type { PartialFiles } from "./partial-files.ts";
import type { SessionIndex } from "./session-index.ts";
import type { SeenSession, SessionRow } from "./session-row.ts";
import type { SessionsView } from "./sessions-view.ts";

/** What a store knows of an agent's sessions, for what changes them on behalf of other programs and interrupted purges. */
export interface AgentState {
  readonly address: AgentAddress;
  readonly folder: AgentFolder;
  readonly place: AgentPlace;
  readonly log: EntriesLog;
  readonly view: SessionsView;
  readonly index: SessionIndex;
  readonly partials: PartialFiles;
  look(row: SessionRow): SeenSession;
  /** Null when the transcript is gone. `isWhole`: with every record of it. */
  hold(row: SessionRow, isWhole?: boolean): HeldSession | null;
  makeFolders(): void;
  /** Forgets what was read of a transcript. */
  forget(sessionId: string): void;
  /** Deletes transcripts, their archived forms and every copy that was made of them. */
  removeBytes(fileNames: ReadonlySet<string>): void;
  /** Brings the index to what is known. False when that was not possible now. */
  updateIndex(seen: readonly SeenSession[]): boolean;
}
