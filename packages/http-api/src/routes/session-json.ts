import type { SessionState } from "@throughline/core";
import { sessionRow } from "@throughline/core/internal";

export interface SessionJson {
  readonly kind: "session";
  readonly [field: string]: unknown;
}

export function sessionJson(state: SessionState, withEntry: boolean = false): SessionJson {
  const { ref, revision, head, entry } = state;
  const row = { ...sessionRow(state), namespace: ref.namespace, revision, head };
  return withEntry ? { ...row, entry } : row;
}

/** Changes with every change of the entry and with every record, so it is valid as the ETag of both. */
export function sessionTag({ sessionId, revision, head }: SessionState): string {
  return `W/"${sessionId}.${revision}.${head.lastSeq}"`;
}

export function revisionTag({ revision }: SessionState): string {
  return `"${revision}"`;
}
