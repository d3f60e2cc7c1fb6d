import type { PurgedSource, PurgesOptions } from "@throughline/core/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { MaintenanceContext } from "./maintenance-context.ts";
import type { StoreContext } from "./store-context.ts";

/** Yields the marks of purges in a namespace, for another store. */
export async function* purgesOf(
  scope: MaintenanceContext,
  { namespace = "", agentId, signal }: PurgesOptions,
): AsyncGenerator<readonly PurgedSource[]> {
  for (const { address, log } of scope.agents()) {
    scope.begin(signal);
    if (address.namespace !== namespace || (agentId ?? address.agentId) !== address.agentId) continue;
    log.refresh();
    const { purged } = log.image.sources;
    if (purged.size > 0)
      yield Array.from(purged, ([digest, purgedAtMs]) => ({ agentId: address.agentId, digest, purgedAtMs }));
  }
}

/** Adds marks of another store. The later time of a source stays. */
export async function addPurges(
  { locks }: StoreContext,
  agent: AgentSessionFiles,
  purges: readonly PurgedSource[],
): Promise<void> {
  const { log, folder } = agent;
  agent.prepareWriting();
  await locks.hold([folder.entriesLock], () => {
    log.refreshHeld();
    const known = log.image.sources.purged;
    const purged = purges.flatMap(({ digest, purgedAtMs }) =>
      purgedAtMs > (known.get(digest) ?? -1) ? [[digest, purgedAtMs] as const] : [],
    );
    if (purged.length > 0) log.write({ op: "remove", rows: [], purged });
  });
  await log.flushed();
}
