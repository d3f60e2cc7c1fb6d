import pg from "pg";
import { systemClock, systemRandom } from "@throughline/core/internal";
import { ConnectionPool } from "../src/connection-pool.ts";
import { migrateSchema } from "../src/migrate-schema.ts";
import type { MigrationPlace } from "../src/migration-place.ts";

/** A place to migrate, on a pool of its own that `end` ends. */
export function migrationPlace(url: string, schemaName: string): MigrationPlace & { end(): Promise<void> } {
  const inner = new pg.Pool({ connectionString: url, max: 2 });
  inner.on("error", () => undefined);
  const pool = new ConnectionPool(inner, {
    maxWaiting: 10,
    timeoutMs: 30_000,
    connectTimeoutMs: 10_000,
    prepare: true,
    clock: systemClock,
    random: systemRandom,
    place: "test",
  });
  return { pool, schemaName, schema: `"${schemaName}"`, end: () => inner.end() };
}

/** A schema of the tenant layout, every table in partitions: it shows which of them a statement asks. */
export async function makeStandIn(url: string, schemaName: string, partitions: number): Promise<void> {
  const where = migrationPlace(url, schemaName);
  await migrateSchema(where, { layout: "tenant", partitions, partsAll: true });
  await where.end();
}
