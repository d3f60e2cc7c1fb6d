import type { ListQuery } from "@throughline/core";
import type { PurgedSource, PurgesOptions } from "@throughline/core/internal";
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

/** Yields the marks of a namespace, for another store. @throws {ThroughlineError} STORE_CORRUPT */
export async function* purgesOf(
  handle: StoreHandle,
  { namespace = "", agentId, signal }: PurgesOptions,
): AsyncGenerator<readonly PurgedSource[]> {
  for await (const rows of purgedSources(handle, signal)) {
    const wanted = rows.filter((row) => row.namespace === namespace && (agentId ?? row.agent_id) === row.agent_id);
    if (wanted.length > 0)
      yield wanted.map(checkedPurge).map(({ agent_id, source_digest, purged_at_ms }) => ({
        agentId: agent_id,
        digest: source_digest,
        purgedAtMs: purged_at_ms,
      }));
  }
}

/** Adds marks of another store. The later time of a source stays. */
export function addPurges({ statements }: Connection, namespace: string, purges: readonly PurgedSource[]): void {
  for (const { agentId, digest, purgedAtMs } of purges) {
    const known = statements.findPurges.all(namespace, digest).find((row) => row.agent_id === agentId);
    if (known !== undefined && known.purged_at_ms >= purgedAtMs) continue;
    const row = { namespace, agent_id: agentId, source_digest: digest, purged_at_ms: purgedAtMs };
    statements.notePurge.run({ ...row, crc: purgeChecksum(row) });
  }
}
