import { createFinding, hasErrorCode, type Finding } from "@throughline/core";
import type { ForeignFormat } from "@throughline/foreign-formats";
import { readSourceText } from "./node/source-files.ts";

type EntryFields = Readonly<Record<string, unknown>>;

/** Reads the files that other programs keep beside their sessions, each once: an index may name very many sessions. */
export class CompanionFiles {
  readonly #texts = new Map<string, Promise<string | null>>();

  /** What the file beside a session's own holds about the session; empty without a readable file. */
  async entryOf(format: ForeignFormat, path: string, sessionId: string): Promise<EntryFields | null> {
    const text = await this.#textOf(format, path);
    return text === null ? null : (format.companion?.entryOf(text, sessionId) ?? null);
  }

  /** What the file says of the session that an import does not follow. */
  async findingsOf(format: ForeignFormat, path: string, sessionId: string): Promise<readonly Finding[]> {
    const text = format.companion?.noteOf === undefined ? null : await this.#textOf(format, path);
    const note = text === null ? null : (format.companion?.noteOf?.(text, sessionId) ?? null);
    return note === null ? [] : [createFinding("SOURCE_UNREAD", note, { path })];
  }

  async #textOf({ companion }: ForeignFormat, path: string): Promise<string | null> {
    const place = companion?.path(path) ?? null;
    if (place === null) return null;
    const read = this.#texts.get(place) ?? readIfThere(place);
    this.#texts.set(place, read);
    return read;
  }
}

/** The session matters more than this file: one that is too large, or closed to this user, counts as empty. */
export async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readSourceText(path);
  } catch (error) {
    if (hasErrorCode(error, "FILE_NOT_FOUND", "FILE_UNREADABLE", "PATH_UNSAFE")) return null;
    throw error;
  }
}
