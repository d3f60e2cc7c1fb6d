import { hasErrorCode, type SessionEntry, type SessionRef, type SessionStore } from "@throughline/core";
import { patchEntry, quote, updateEntry } from "@throughline/core/internal";
import type { TranscriptSource } from "./transcript-source.ts";

/** A file that a session was written to for another program, as the field `handedOff` of its entry lists them. */
export interface HandedOff {
  readonly format: string;
  /** The id that the program knows it by. */
  readonly sessionId: string;
  /** Absolute. */
  readonly path: string;
  /** The size of the file as it was written. */
  readonly sizeBytes: number;
}

/** The hand-offs that an entry lists. */
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
 * Adds a hand-off to the session's entry, so that an import knows the file. False where nobody may write the entry: in a
 * store that is read only, with a token that may only read, and in an archived session.
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

/** Why an import makes no session of a source, as a sentence. */
export function leftAloneText(
  { path, sessionId }: Pick<TranscriptSource, "path" | "sessionId">,
  why: "purged" | { readonly handedOffFrom: string },
): string {
  if (why === "purged")
    return `${quote(path)} is session ${quote(sessionId)}, which was imported and has been purged here: it stays away.`;
  return `${quote(path)} is a hand-off of ${quote(why.handedOffFrom)} and has not grown: nothing is imported.`;
}
