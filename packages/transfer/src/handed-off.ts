import { hasErrorCode, type SessionEntry, type SessionRef, type SessionStore } from "@throughline/core";
import { patchEntry, quote, updateEntry } from "@throughline/core/internal";
import type { TranscriptSource } from "./transcript-source.ts";

export interface HandedOff {
  readonly format: string;
  readonly sessionId: string;
  /** The path is absolute. */
  readonly path: string;
  /** Holds the size at writing, so that an import can detect later growth. */
  readonly sizeBytes: number;
}

export function handedOffOf(entry: SessionEntry): readonly HandedOff[] {
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

/** Explains in a sentence why an import creates no session for a source. */
export function leftAloneText(
  { path, sessionId }: Pick<TranscriptSource, "path" | "sessionId">,
  why: "purged" | { readonly handedOffFrom: string },
): string {
  if (why === "purged")
    return `${quote(path)} is session ${quote(sessionId)}, which was imported and has been purged here: it stays away.`;
  return `${quote(path)} is a hand-off of ${quote(why.handedOffFrom)} and has not grown: nothing is imported.`;
}
