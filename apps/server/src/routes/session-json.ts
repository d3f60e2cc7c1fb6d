import type { SessionState } from "@throughline/core";
import { sessionRow } from "@throughline/core/internal";

/** A session as every route states it: what the command line prints, and where it stands. */
export interface SessionJson {
  readonly kind: "session";
  readonly [field: string]: unknown;
}

export function sessionJson(state: SessionState, withEntry: boolean = false): SessionJson {
  const { ref, revision, head, entry } = state;
  const row = { ...sessionRow(state), namespace: ref.namespace, revision, head };
  return withEntry ? { ...row, entry } : row;
}

/** Changes with every change of the entry and every record. */
export function sessionTag({ sessionId, revision, head }: SessionState): string {
  return `W/"${sessionId}.${revision}.${head.lastSeq}"`;
}

export function revisionTag({ revision }: SessionState): string {
  return `"${revision}"`;
}
