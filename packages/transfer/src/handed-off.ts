import { createHash } from "node:crypto";
import {
  hasErrorCode,
  type SessionEntry,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { listSessions, patchEntry, updateEntry } from "@throughline/core/internal";
import { openSource } from "./node/source-files.ts";
import { createUnitSplitter } from "./source-units.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/** Describes a session that was written for another program, in the field `handedOff` of its entry. */
export interface HandedOff {
  readonly format: string;
  readonly sessionId: string;
  /** The path is absolute. */
  readonly path: string;
  /** Holds the size at writing, so that an import can detect later growth; 0 until the file is written. */
  readonly sizeBytes: number;
  /** Holds the SHA-256 of those bytes, in hex. */
  readonly sha256: string;
  /** Counts the lines of those bytes. */
  readonly lineCount: number;
  /** Holds the last seq and the head of the session at writing. What the program adds comes behind them. */
  readonly lastSeq: number;
  readonly headId: string | null;
}

function handedOffOf(entry: SessionEntry): readonly HandedOff[] {
  const { handedOff } = entry;
  return Array.isArray(handedOff) ? handedOff.filter(isHandedOff) : [];
}

function isHandedOff(value: unknown): value is HandedOff {
  if (typeof value !== "object" || value === null) return false;
  const { format, sessionId, path, sizeBytes, sha256, lineCount, lastSeq, headId } = value as Partial<HandedOff>;
  const texts = [format, sessionId, path, sha256];
  const numbers = [sizeBytes, lineCount, lastSeq];
  return (
    texts.every((text) => typeof text === "string") &&
    numbers.every((number) => typeof number === "number") &&
    (headId === null || typeof headId === "string")
  );
}

/**
 * Adds a hand-off to the session's entry, so that an import recognizes the file, or replaces the note of the same
 * session. Returns false if the entry cannot be written: a read-only store, a token without write permission, or an
 * archived session.
 */
export async function noteHandOff(store: SessionStore, ref: SessionRef, handedOff: HandedOff): Promise<boolean> {
  try {
    await updateEntry(store, ref, (entry) => {
      const others = handedOffOf(entry).filter(({ sessionId }) => sessionId !== handedOff.sessionId);
      return patchEntry(entry, { handedOff: [...others, handedOff] });
    });
    return true;
  } catch (error) {
    if (hasErrorCode(error, "STORE_READ_ONLY", "FORBIDDEN", "SESSION_ARCHIVED")) return false;
    throw error;
  }
}

/** Reads what an import needs to know of a file that was just written. */
export async function writtenFacts(path: string): Promise<Pick<HandedOff, "sizeBytes" | "sha256" | "lineCount">> {
  const file = await openSource(path);
  try {
    const hash = createHash("sha256");
    const splitter = createUnitSplitter(Number.MAX_SAFE_INTEGER);
    let lineCount = 0;
    for await (const chunk of file.chunks()) {
      hash.update(chunk);
      lineCount += [...splitter.push(chunk)].length;
    }
    lineCount += splitter.end().length;
    return { sizeBytes: file.sizeBytes, sha256: hash.digest("hex"), lineCount };
  } finally {
    await file.close();
  }
}

/**
 * Changes the end of a UUID so that `mayBeHandedOff` recognizes it. A session with any other id was not handed off, and
 * no entry has to be read to know that.
 */
export function handOffId(uuid: string): string {
  return uuid.slice(0, endsAt) + endOf(uuid);
}

/** True for the ids that `handOffId` returns, and for one in 2^48 others. */
function mayBeHandedOff(sessionId: string): boolean {
  const id = sessionId.toLowerCase();
  return id.length === endsAt + 12 && id.slice(endsAt) === endOf(id);
}

/** The last group of a UUID has 12 digits. */
const endsAt = 24;

function endOf(uuid: string): string {
  return createHash("sha256")
    .update(`hand-off ${uuid.slice(0, endsAt)}`)
    .digest("hex")
    .slice(0, 12);
}

/** Names the session that was handed off in a file, and the note of it. */
export interface FoundHandOff {
  readonly state: SessionState;
  readonly handedOff: HandedOff;
}

/**
 * Finds the session that was handed off in a file. The session's own entry names the file, so no look-up by source finds
 * it: the entries are read, but only for an id that a hand-off may have.
 */
export class HandOffSearch {
  readonly #store: SessionStore;
  readonly #namespace: string;
  #found = new Map<string, FoundHandOff>();

  constructor(store: SessionStore, namespace: string) {
    this.#store = store;
    this.#namespace = namespace;
  }

  /** Returns null for any other file. */
  async find({
    sessionId,
    sizeBytes,
  }: Pick<TranscriptSource, "sessionId" | "sizeBytes">): Promise<FoundHandOff | null> {
    // Each hand-off states its size. A source without one, such as a session in a database, is none.
    if (sizeBytes === null || !mayBeHandedOff(sessionId)) return null;
    const id = sessionId.toLowerCase();
    const known = this.#found.get(id);
    // A session may have been handed off since the entries were read, and its file may not be written yet.
    if (known === undefined || known.handedOff.sizeBytes === 0) await this.#read();
    return this.#found.get(id) ?? null;
  }

  async #read(): Promise<void> {
    const query = { namespace: this.#namespace, state: "any", sort: "key", limit: 200 } as const;
    const found = new Map<string, FoundHandOff>();
    for await (const state of listSessions(this.#store, query))
      for (const handedOff of handedOffOf(state.entry))
        found.set(handedOff.sessionId.toLowerCase(), { state, handedOff });
    this.#found = found;
  }
}
