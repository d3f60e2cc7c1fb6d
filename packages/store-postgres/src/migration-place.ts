import type { ConnectionPool, RunStatement } from "./connection-pool.ts";

/** Identifies the advisory lock of migrations: "tlne". A transaction holds it, so it works behind any pooler. */
const lockNumber = 0x746c6e65;

export interface MigrationPlace {
  readonly pool: ConnectionPool;
  /** The plain name serves messages, the quoted one statements. */
  readonly schemaName: string;
  readonly schema: string;
}

/** Keeps other nodes from changing the schema until the transaction ends. */
export async function takeMigrationLock(run: RunStatement): Promise<void> {
  await run("SELECT pg_advisory_xact_lock($1)", [lockNumber]);
}
