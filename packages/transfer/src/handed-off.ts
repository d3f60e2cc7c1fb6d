import { hasErrorCode, type SessionEntry, type SessionRef, type SessionStore } from "@throughline/core";
import { listSessions, patchEntry, updateEntry } from "@throughline/core/internal";
import type { TranscriptSource } from "./transcript-source.ts";

export interface HandedOff {
  readonly format: string;
  readonly sessionId: string;
  /** The path is absolute. */
  readonly path: string;
  /** Holds the size at writing, so that an import can detect later growth. */
  readonly sizeBytes: number;
}

function handedOffOf(entry: SessionEntry): readonly HandedOff[] {
  const { handedOff } = entry;
  return Array.isArray(handedOff) ? handedOff.filter(isHandedOff) : [];
}

function isHandedOff(value: unknown): value is HandedOff {
  if (typeof value !== "object" || value === null) return false;
  const { format, sessionId, path, sizeBytes } = value as Partial<HandedOff>;
  const texts = [format, sessionId, path];
  return texts.every((text) => typeof text === "string") && typeof sizeBytes === "number";
}

/**
 * Adds a hand-off to the session's entry, so that an import recognizes the file. Returns false if the entry cannot be
 * written: a read-only store, a token without write permission, or an archived session.
 */
export async function noteHandOff(store: SessionStore, ref: SessionRef, handedOff: HandedOff): Promise<boolean> {
  try {
    await updateEntry(store, ref, (entry) => patchEntry(entry, { handedOff: [...handedOffOf(entry), handedOff] }));
    return true;
  } catch (error) {
    if (hasErrorCode(error, "STORE_READ_ONLY", "FORBIDDEN", "SESSION_ARCHIVED")) return false;
    throw error;
  }
}

/**
 * Finds the session that was handed off in a file. The session's own entry names the file, so no look-up by source finds
 * it: the entries are read once, and only if a source has no session here.
 */
export class HandOffSearch {
  readonly #store: SessionStore;
  readonly #namespace: string;
  #keys: Promise<ReadonlyMap<string, string>> | null = null;

  constructor(store: SessionStore, namespace: string) {
    this.#store = store;
    this.#namespace = namespace;
  }

  /** Returns the key of the session; null for any other file, and once the file has grown. */
  async keyOf(source: Pick<TranscriptSource, "sessionId" | "sizeBytes">): Promise<string | null> {
    // Each hand-off states its size. A source without one, such as a session in a database, is none.
    if (source.sizeBytes === null) return null;
    this.#keys ??= this.#readKeys();
    return (await this.#keys).get(fileName(source)) ?? null;
  }

  async #readKeys(): Promise<ReadonlyMap<string, string>> {
    const keys = new Map<string, string>();
    const query = { namespace: this.#namespace, state: "any", sort: "key", limit: 200 } as const;
    for await (const { entry, ref } of listSessions(this.#store, query))
      for (const handedOff of handedOffOf(entry)) keys.set(fileName(handedOff), ref.key);
    return keys;
  }
}

function fileName({ sessionId, sizeBytes }: Pick<TranscriptSource, "sessionId" | "sizeBytes">): string {
  return `${sizeBytes} ${sessionId.toLowerCase()}`;
}
