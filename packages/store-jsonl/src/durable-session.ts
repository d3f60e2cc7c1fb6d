import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { HeldSession } from "./held-session.ts";
import { withFileErrors } from "./file-work.ts";
import { writeNewFile, type ChangeContext } from "./session-changes.ts";
import type { SessionRow } from "./session-row.ts";

/**
 * Flushes what a session needs that was created with less than `disk`: its header and what follows, its file's name and
 * its line in the entries log. To be done before anything of it is acknowledged at `disk`, by whichever process that
 * is. Once for a session: then its row says no more that it is to be done. Under the locks of the session and of the
 * entries.
 */
export function makeDurable(scope: ChangeContext, row: SessionRow): SessionRow {
  const { agent } = scope;
  const { isUnflushed, ...durable } = row;
  if (isUnflushed !== true) return row;
  // Another program may have moved or deleted the file; the session can still be archived and purged.
  const held = holdIfThere(scope, row, false);
  if (held !== null) {
    const { file, path } = held;
    file.flushNow();
    withFileErrors(agent.folder.sessions, () => agent.names.flush(path, file.facts?.identity ?? ""));
  }
  agent.log.flushNow();
  // Should this line be lost, all of it is done again: nothing that is acknowledged hangs on it.
  agent.log.write({ op: "save", rows: [durable] });
  return durable;
}

/**
 * Whether something of the session can be acknowledged at `disk` only after its line in the entries log was made safe,
 * under the lock of that. Looks at nothing.
 */
export function isUnflushed(agent: AgentSessionFiles, sessionId: string): boolean {
  const { log } = agent;
  if (log.isInDoubt || log.row(sessionId)?.isUnflushed === true) return true;
  return !log.isOnDisk(sessionId) && log.isMarked;
}

/**
 * The session under its lock, with its file. One that was not to survive a power cut may have lost it, and starts
 * again.
 * @throws {ThroughlineError} STORE_CORRUPT when a file is gone that was on the disk
 */
export function holdForWriting(scope: ChangeContext, row: SessionRow, isWhole: boolean): HeldSession {
  return holdIfThere(scope, row, isWhole) ?? scope.agent.holdExisting(row, isWhole);
}

/** As `holdForWriting`; null where that throws. */
export function holdIfThere(scope: ChangeContext, row: SessionRow, isWhole: boolean): HeldSession | null {
  const { agent } = scope;
  if (row.isUnflushed === true && agent.hold(row, isWhole) === null)
    writeNewFile(scope, agent.folder.session(row.fileName), row);
  return agent.holdInPlace(row, isWhole);
}
