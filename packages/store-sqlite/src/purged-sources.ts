import type { ListQuery } from "@throughline/core";
import type { Connection } from "./connection.ts";
import { checkedPurge, purgeChecksum } from "./row-checksums.ts";
import type { PurgedSourceRow, SessionRow } from "./rows.ts";
import type { StoreHandle } from "./store-handle.ts";

const sliceRows = 1000;

/** Notes the source of a session that is being purged. The row stays, so that a repeated import can leave it purged. */
export function notePurge(
  { statements }: Connection,
  { namespace, agent_id: agentId, source_digest: digest }: SessionRow,
  nowMs: number,
): void {
  if (digest === null) return;
  const row = { namespace, agent_id: agentId, source_digest: digest, purged_at_ms: nowMs };
  statements.notePurge.run({ ...row, crc: purgeChecksum(row) });
}

/**
 * Returns the time of the last purge of a source, or null. Without an agent, the purges of all agents count.
 * @throws {ThroughlineError} STORE_CORRUPT
 */
export function lastPurgeMs(
  { statements }: Connection,
  digest: string,
  { namespace = "", agentId }: Pick<ListQuery, "namespace" | "agentId">,
): number | null {
  const rows = statements.findPurges.all(namespace, digest).map(checkedPurge);
  const ofAgent = rows.filter((row) => agentId === undefined || row.agent_id === agentId);
  return ofAgent.reduce<number | null>((last, row) => Math.max(last ?? row.purged_at_ms, row.purged_at_ms), null);
}

/** Yields the rows of all purged sources in slices, unchecked. @throws {ThroughlineError} STORE_CORRUPT */
export async function* purgedSources(
  handle: StoreHandle,
  signal?: AbortSignal,
): AsyncGenerator<readonly PurgedSourceRow[]> {
  for (let last = 0; ;) {
    const after = last;
    const rows = await handle.read(({ statements }) => statements.nextPurges.all(after, sliceRows), signal);
    const end = rows.at(-1);
    if (end === undefined) return;
    yield rows;
    last = end.purge;
  }
}
