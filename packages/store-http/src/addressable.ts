import type { SessionRef } from "@throughline/core";

/** False where no store keeps a session: such an address cannot be written in a URL. */
export function isAddressable({ namespace, agentId, key, archiveId = "" }: SessionRef): boolean {
  const parts = [namespace, agentId, key, archiveId];
  return parts.every((part) => part.isWellFormed() && !part.includes("\0")) && Buffer.byteLength(key) <= 2000;
}
