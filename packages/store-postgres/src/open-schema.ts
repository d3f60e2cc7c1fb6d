import { type Clock, ThroughlineError } from "@throughline/core";
import { quote, refused } from "@throughline/core/internal";
import { appendSql } from "./append-records.ts";
import { assertGrants } from "./assert-grants.ts";
import { readyDistribution } from "./distribution.ts";
import { layoutNamed, type LayoutName } from "./layout.ts";
import { assertKnown, migrateSchema, outdated, readVersion } from "./migrate-schema.ts";
import type { MigrationPlace } from "./migration-place.ts";
import { applyRowSecurity, readSecurity } from "./row-security.ts";
import { ShardNodes } from "./shard-nodes.ts";
import { schemaSteps } from "./schema.ts";
import type { FoundSchema } from "./store-context.ts";

export interface OpenOptions {
  readonly migrate: boolean;
  readonly partitions: number;
  readonly codecName: string | null;
  readonly rowSecurity: boolean;
  /** @default the layout of the schema, else plain */
  readonly layout?: LayoutName;
}

/**
 * Opens or creates the schema, and refuses a server that cannot keep the store's promises.
 * @throws {ThroughlineError} STORE_UNSUPPORTED, STORE_NOT_FOUND, STORE_FOREIGN, STORE_VERSION_UNSUPPORTED, CODEC_FAILED
 */
export async function openSchema(
  place: MigrationPlace & { readonly clock: Clock },
  options: OpenOptions,
): Promise<FoundSchema> {
  const hasCitus = await assertServer(place);
  let { layout = "plain" } = options;
  if (options.migrate) {
    layout = await migrateSchema(place, { ...options, isDistributed: hasCitus });
    // A read comes first, because a replica and a role without write access open an existing store with the same
    // options.
    if ((await keptCodec(place)) === null)
      await place.pool.run(
        `INSERT INTO ${place.schema}.store_info (name, value) VALUES ('codec', $1) ON CONFLICT (name) DO NOTHING`,
        [options.codecName ?? ""],
      );
    await applyRowSecurity(place, layout, { isAsked: options.rowSecurity, hasCitus });
  } else {
    const found = await place.pool.transaction((run) => readVersion(place, run));
    if (found !== null) layout = options.layout ?? found.layout;
    const steps = schemaSteps(layout);
    const newest = steps.at(-1)?.version ?? 0;
    if (found !== null && found.version < newest) throw outdated(place, found, newest);
    if (found === null)
      throw refused("STORE_NOT_FOUND", `The schema ${place.schemaName} is not at version ${newest}.`, {
        schema: place.schemaName,
        found: null,
        newest,
      });
    assertKnown(place, found, layout, steps);
    if (options.rowSecurity) await assertSecured(place, layout);
  }
  if (options.rowSecurity) await assertGrants(place, layout);
  await assertCodec(place, options.codecName);
  const kept = layoutNamed(layout);
  const isDistributed = hasCitus && (await readyDistribution(place, kept, options.migrate));
  const nodes = isDistributed && layout === "tenant" ? await ShardNodes.read(place) : null;
  return { layout: kept, isDistributed, nodes, appendSql: appendSql(place.schema, kept) };
}

const oldestServer = 140_000;
const largestExact = Number.MAX_SAFE_INTEGER;

function setting(name: string): string {
  return `pg_catalog.current_setting('${name}')`;
}

/** Returns whether the database has the extension of Citus. */
async function assertServer({ pool }: MigrationPlace): Promise<boolean> {
  const [row] = await pool.run(
    `SELECT ${setting("server_version_num")}::int AS version, ${setting("server_encoding")} AS encoding,
       ${setting("default_transaction_isolation")} AS isolation, ${setting("fsync")} AS fsync,
       ${setting("array_nulls")} AS array_nulls, pg_catalog.current_schemas(true)::text[] AS search_path,
       ${largestExact}::double precision::text AS digits,
       EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'citus') AS has_citus`,
    [],
    { isRead: true },
  );
  const unsupported = (what: string, remedy: string): Error =>
    new ThroughlineError("STORE_UNSUPPORTED", what, { outcome: "not-applied", details: { ...row }, remedy });
  if (Number(row?.["version"]) < oldestServer)
    throw unsupported(
      "The server is older than PostgreSQL 14.",
      "Upgrade the server. The store is tested on PostgreSQL 15 and 18.",
    );
  if (row?.["encoding"] !== "UTF8")
    throw unsupported(
      `The database is in ${String(row?.["encoding"])}.`,
      "Use a database that was made with ENCODING 'UTF8'.",
    );
  // A stricter level fixes the snapshot before the wait for the session row, so conditions would use old values.
  if (row["isolation"] !== "read committed")
    throw unsupported(
      `The default isolation is ${String(row["isolation"])}.`,
      "ALTER ROLE … SET default_transaction_isolation = 'read committed'.",
    );
  // A server that rounds would make leases end seconds too early or too late.
  if (Number(row["digits"]) !== largestExact)
    throw unsupported("The server rounds numbers it gives out.", "ALTER ROLE … SET extra_float_digits = 1.");
  if (row["array_nulls"] === "off")
    throw unsupported("The server takes NULL in an array for a word.", "ALTER ROLE … SET array_nulls = on.");
  // Otherwise functions and operators of other schemas would run in place of the server's own.
  const [first] = (row["search_path"] as readonly string[]).filter((name) => !name.startsWith("pg_temp"));
  if (first !== "pg_catalog")
    throw unsupported(
      `The search_path names the schema ${quote(first)} before pg_catalog.`,
      "ALTER ROLE … SET search_path, without pg_catalog in it: PostgreSQL then searches pg_catalog first.",
    );
  if (row["fsync"] === "off")
    throw unsupported("The server runs with fsync off.", "Turn it on: no level of durability holds without.");
  return row["has_citus"] === true;
}

/** Refuses the store if row security was requested and this program may not set it up. */
async function assertSecured(place: MigrationPlace, layout: LayoutName): Promise<void> {
  const { isSecured, isCurrent } = await place.pool.transaction((run) => readSecurity(place.schema, layout, run));
  if (isCurrent) return;
  const { schemaName } = place;
  const message = isSecured
    ? `The row security of the schema ${schemaName} is that of another version.`
    : `The schema ${schemaName} has no row security.`;
  throw new ThroughlineError("STORE_UNSUPPORTED", message, {
    outcome: "not-applied",
    details: { schema: schemaName, isSecured },
    remedy: "Open the store once as the owner of its tables, with rowSecurity: true and without migrate: false.",
  });
}

/**
 * Returns the name of the codec that the store was written under. It is empty for none, and null before the first owner
 * opened the store.
 */
export async function keptCodec({ pool, schema }: Pick<MigrationPlace, "pool" | "schema">): Promise<string | null> {
  const [row] = await pool.run(`SELECT value FROM ${schema}.store_info WHERE name = 'codec'`, [], { isRead: true });
  return row === undefined ? null : String(row["value"]);
}

async function assertCodec(place: MigrationPlace, codecName: string | null): Promise<void> {
  const kept = (await keptCodec(place)) ?? "";
  if (kept === (codecName ?? "")) return;
  const written = kept === "" ? "without a codec" : `with the codec ${quote(kept)}`;
  throw refused("CODEC_FAILED", `The store was written ${written}, and opened with ${quote(codecName)}.`, {
    kept,
    given: codecName,
  });
}
