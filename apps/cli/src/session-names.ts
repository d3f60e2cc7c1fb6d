import { sep } from "node:path";
import {
  isRecordOfType,
  type Message,
  type SessionState,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { blocksText, givenName, sessionName } from "@throughline/core/internal";
import { shorten } from "./cells.ts";
import { programName } from "./program-names.ts";
import { terminalSafeLine } from "./terminal-safe.ts";

/** Limits the records that are searched for the first words of a session. */
const mostRecordsRead = 20;
const mostWordCells = 60;

/**
 * Returns the label or title, else the first words in quotation marks, else the last part of the key. The words are
 * read from the store, so call this only for rows that are shown.
 */
export async function shownName(store: SessionStore, state: SessionState, signal?: AbortSignal): Promise<string> {
  const given = givenName(state.entry);
  if (given !== null) return given;
  const words = await firstWords(store, state, signal);
  return words === null ? sessionName(state) : `"${words}"`;
}

/** Returns the first words of a person, safe to print; null without any. */
export async function firstWords(
  store: SessionStore,
  { ref }: Pick<SessionState, "ref">,
  signal?: AbortSignal,
): Promise<string | null> {
  const page = { limit: mostRecordsRead, ...(signal === undefined ? {} : { signal }) };
  try {
    for await (const { records } of store.read(ref, page)) {
      for (const { record } of records) {
        const message = isRecordOfType(record, "message") ? (record.message as Partial<Message> | null) : null;
        if (message?.role !== "user") continue;
        const line = terminalSafeLine(blocksText(message.content)).trim();
        if (line !== "") return shorten(line, mostWordCells, "end");
      }
    }
  } catch (error) {
    // The list still shows the other sessions; reading this session reports its error.
    if (!ThroughlineError.isInstance(error) || error.code === "ABORTED") throw error;
  }
  return null;
}

/** Returns `own` for a session that began here, which reports call null or `own`. */
export function shownProgram(program: string | null): string {
  return program === null ? "own" : programName(program);
}

/** Writes `~` for the user's home; empty without a folder. */
export function shownFolder(cwd: string | null | undefined, userHome: string): string {
  if (typeof cwd !== "string") return "";
  if (userHome === "" || userHome === "/") return cwd;
  if (cwd === userHome) return "~";
  return cwd.startsWith(`${userHome}${sep}`) ? `~${cwd.slice(userHome.length)}` : cwd;
}
