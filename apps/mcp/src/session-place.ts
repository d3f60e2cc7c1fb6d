import type { SessionRef } from "@throughline/core";
import { agentOfKey } from "@throughline/core/internal";

/** Returns the session's agent if neither the key nor the default agent identifies it; null otherwise. */
export function agentBeside({ key, agentId }: SessionRef, ownAgent: string): string | null {
  return agentId === ownAgent || agentOfKey(key) !== null ? null : agentId;
}

/** JSON quoting ensures that a quotation mark in a key cannot end it. */
export function placeOf({ key, agent }: { readonly key: string; readonly agent?: string | undefined }): string {
  return agent === undefined ? JSON.stringify(key) : `${JSON.stringify(key)} (agent ${JSON.stringify(agent)})`;
}
