import type { SessionEntry, SessionState } from "@throughline/core";
import { isFields, sessionRow } from "@throughline/core/internal";
import type { SourceFiles } from "../api-context.ts";
import type { View } from "../security/view.ts";

export interface SessionJson {
  readonly kind: "session";
  readonly [field: string]: unknown;
}

export function sessionJson(state: SessionState, withEntry: boolean = false): SessionJson {
  const { ref, revision, head, entry } = state;
  const row = { ...sessionRow(state), namespace: ref.namespace, forkOrigin: forkOrigin(entry), revision, head };
  return withEntry ? { ...row, entry } : row;
}

/** Is the session in the answer to a write. A token that may not read gets it without its entry. */
export function writtenSessionJson(
  view: Pick<View, "isReader">,
  state: SessionState,
  withEntry?: boolean,
): SessionJson {
  return sessionJson({ ...state, entry: shownEntry(view, state) }, withEntry);
}

/** Returns the entry for the answer to a write: of a token that may not read, the id alone. */
export function shownEntry({ isReader }: Pick<View, "isReader">, { entry, sessionId }: SessionState): SessionEntry {
  return isReader ? entry : { sessionId };
}

/** States where a fork begins: the last record that it shares is `atSeq`. */
export interface ForkOrigin {
  readonly agentId: string | null;
  readonly key: string | null;
  readonly sessionId: string;
  readonly atSeq: number | null;
}

/** Entries may come from clients, so each member is checked. */
export function forkOrigin(entry: SessionState["entry"]): ForkOrigin | null {
  const from = entry["forkedFrom"];
  if (!isFields(from) || typeof from["sessionId"] !== "string" || from["sessionId"] === "") return null;
  const { agentId, key, sessionId, atSeq } = from;
  return {
    agentId: typeof agentId === "string" ? agentId : null,
    key: typeof key === "string" ? key : null,
    sessionId,
    atSeq: typeof atSeq === "number" && Number.isSafeInteger(atSeq) && atSeq >= 0 ? atSeq : null,
  };
}

/** Returns when the file of an imported session was last written; null where the host does not look at files. */
export async function sourceAtMs({ entry }: SessionState, files: SourceFiles | null): Promise<number | null> {
  const receipt = entry["importedFrom"];
  const path = isFields(receipt) ? receipt["path"] : null;
  return files === null || typeof path !== "string" || path === "" ? null : files.modifiedMs(path);
}

/** Changes with every change of the entry and with every record, so it is valid as the ETag of both. */
export function sessionTag({ sessionId, revision, head }: SessionState): string {
  return `W/"${sessionId}.${revision}.${head.lastSeq}"`;
}

export function revisionTag({ revision }: SessionState): string {
  return `"${revision}"`;
}
