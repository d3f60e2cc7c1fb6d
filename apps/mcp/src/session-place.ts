import type { SessionRef } from "@throughline/core";
import { agentOfKey } from "@throughline/core/internal";

/** The agent of a session whose key does not name it and who is not the one such keys belong to; else null. */
export function agentBeside({ key, agentId }: SessionRef, ownAgent: string): string | null {
  return agentId === ownAgent || agentOfKey(key) !== null ? null : agentId;
}

/** A session on a line. A key holds no control character; a quotation mark of it must not end it. */
export function placeOf({ key, agent }: { readonly key: string; readonly agent?: string | undefined }): string {
  return agent === undefined ? JSON.stringify(key) : `${JSON.stringify(key)} (agent ${JSON.stringify(agent)})`;
}
