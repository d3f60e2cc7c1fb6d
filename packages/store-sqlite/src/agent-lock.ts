import { createHash } from "node:crypto";
import { type Clock, ThroughlineError } from "@throughline/core";
import { quote, type StoreLockOptions } from "@throughline/core/internal";
import { holdLock } from "@throughline/store-kit/internal";
import { claim } from "./claim-file.ts";
import { databasePath } from "./file-facts.ts";
import { lockHolder } from "./store-file.ts";
import type { SqliteDriver } from "./connection.ts";

/** SQLite takes its locks at this byte and behind it, in every database file. */
const lockByte = 0x4000_0000;
/** SQLite blocks the event loop while it waits, so it waits shortly: the next attempt comes soon anyway. */
const waitMs = 2;

export interface AgentLock {
  readonly path: string;
  readonly driver: SqliteDriver;
  readonly clock: Clock;
  readonly namespace: string;
  readonly agentId: string;
}

/**
 * Runs the work of a caller while no other holder has the agent's lock. The operating system holds the lock, on an
 * empty file beside the database, so it ends with its process. The database itself stays free for every reader and
 * writer.
 */
export function holdAgentLock<Result>(
  { path: given, driver, clock, namespace, agentId }: AgentLock,
  work: () => Promise<Result>,
  options: StoreLockOptions,
): Promise<Result> {
  // The name is a hash, because a namespace may hold characters that a file name may not.
  const name = createHash("sha256").update(`${namespace}/${agentId}`).digest("hex").slice(0, 16);
  const path = `${databasePath(given)}.lock-${name}`;
  const timedOut = (waitedMs: number): ThroughlineError => {
    const pid = lockHolder(path, lockByte);
    const who = pid === null ? "another holder" : `process ${pid}`;
    return new ThroughlineError(
      "STORE_LOCKED",
      `The lock of agent ${quote(agentId)} was held by ${who} for ${waitedMs} ms.`,
      {
        outcome: "not-applied",
        details: { path, agentId, namespace, waitedMs, ...(pid === null ? {} : { pid }) },
        remedy: "Wait until the holder has finished and try again. The lock ends with the process that holds it.",
      },
    );
  };
  const tryLock = (): (() => void) | null => {
    const release = claim(path, driver, waitMs);
    return release === null ? null : () => release();
  };
  return holdLock({ clock, tryLock, timedOut }, work, options);
}
