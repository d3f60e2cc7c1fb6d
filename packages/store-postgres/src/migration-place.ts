import type { ConnectionPool, RunStatement } from "./connection-pool.ts";

/** The number of the advisory lock that migrations take turns by: "tlne". Held for a transaction, so it fits any pooler. */
const lockNumber = 0x746c6e65;

export interface MigrationPlace {
  readonly pool: ConnectionPool;
  /** The schema's name, and the same quoted. */
  readonly schemaName: string;
  readonly schema: string;
}

/** Until the transaction ends, nobody else changes the schema. */
export async function takeMigrationLock(run: RunStatement): Promise<void> {
  await run("SELECT pg_advisory_xact_lock($1)", [lockNumber]);
}
