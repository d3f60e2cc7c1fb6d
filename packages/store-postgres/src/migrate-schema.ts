import { createHash } from "node:crypto";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import type { RunStatement } from "./connection-pool.ts";
import { takeMigrationLock, type MigrationPlace } from "./migration-place.ts";
import { secureNewTables } from "./policy-parts.ts";
import type { SchemaStep } from "./schema.ts";
import type { SchemaOptions } from "./table-parts.ts";
import { runStatements } from "./split-statements.ts";
import { schemaSteps } from "./schema.ts";
import type { LayoutName } from "./layout.ts";

/**
 * Applies the missing steps of a layout, and returns the layout. Each step is one transaction, and one node works at a
 * time. A second node waits and finds nothing left to do. A step names the oldest program that can work beside it.
 * @throws {ThroughlineError} STORE_VERSION_UNSUPPORTED for a schema that this program does not know, which stays
 * unchanged
 */
export async function migrateSchema(
  place: MigrationPlace,
  options: SchemaOptions & { readonly layout?: LayoutName },
  stepsOf: (layout: LayoutName) => readonly SchemaStep[] = schemaSteps,
): Promise<LayoutName> {
  const before = await place.pool.transaction((run) => readVersion(place, run));
  const layout = options.layout ?? before?.layout ?? "plain";
  const steps = stepsOf(layout);
  const newest = steps.at(-1)?.version ?? 0;
  assertKnown(place, before, layout, steps);
  if (before !== null && before.version >= newest) return layout;
  try {
    if (before === null && options.isDistributed === true)
      await place.pool.transaction(async (run) => {
        await takeMigrationLock(run);
        await createSchema(place, run);
      });
    for (const step of steps)
      await place.pool.transaction((run) => applyStep(place, run, step, { steps, options: { ...options, layout } }));
  } catch (error) {
    const isForbidden = hasErrorCode(error, "STORE_READ_ONLY") && error.details["nativeCode"] === "42501";
    throw before !== null && isForbidden ? outdated(place, before, newest, { cause: error }) : error;
  }
  return layout;
}

/** Says that a schema of an older version has to be upgraded by its owner. */
export function outdated(
  { schemaName }: MigrationPlace,
  { version }: SchemaVersion,
  newest: number,
  options: { readonly cause?: unknown } = {},
): ThroughlineError {
  const why = options.cause === undefined ? "with `migrate: false`" : "and the role of the URL may not do that";
  const message = `The schema ${schemaName} is at version ${version} and has to be upgraded to ${newest}, ${why}.`;
  return new ThroughlineError(options.cause === undefined ? "STORE_NOT_FOUND" : "STORE_READ_ONLY", message, {
    ...options,
    outcome: "not-applied",
    details: { schema: schemaName, found: version, newest },
    remedy:
      "Open the store once as the role that owns the schema, which upgrades it. Then run the GRANT statements of the PostgreSQL store's README again for the other roles.",
  });
}

/**
 * A role that may use an existing schema may lack the right to create one. On Citus this is a transaction of its own. It
 * notes a sequence at the other nodes by a connection of its own, which sees only what is committed.
 */
async function createSchema({ schema, schemaName }: MigrationPlace, run: RunStatement): Promise<void> {
  const [existing] = await run("SELECT FROM pg_namespace WHERE nspname = $1", [schemaName]);
  if (existing === undefined) await run(`CREATE SCHEMA ${schema}`);
}

async function applyStep(
  place: MigrationPlace,
  run: RunStatement,
  step: SchemaStep,
  {
    steps,
    options,
  }: { readonly steps: readonly SchemaStep[]; readonly options: SchemaOptions & { readonly layout: LayoutName } },
): Promise<void> {
  await takeMigrationLock(run);
  // Another node may have applied the step while this one waited for the lock.
  const found = await readVersion(place, run);
  assertKnown(place, found, options.layout, steps);
  if (found !== null && found.version >= step.version) return;
  if (found === null) {
    await createSchema(place, run);
    await run(`CREATE TABLE ${place.schema}.store_info (name text PRIMARY KEY, value text NOT NULL)`);
    await setInfo(place, run, "layout", options.layout);
  }
  await runStatements(run, step.sql(place.schema, options));
  // The transaction closes new tables before any role can see them. Their policies follow after the last step.
  await runStatements(run, secureNewTables(place.schema));
  await setInfo(place, run, "version", String(step.version));
  await setInfo(place, run, "oldest_program", String(step.oldestProgram));
  await setInfo(place, run, `checksum_${step.version}`, checksum(step));
}

export interface SchemaVersion {
  readonly version: number;
  readonly layout: LayoutName;
  /** States the lowest newest step that a program must know to work with the schema. */
  readonly oldestProgram: number;
  /** Holds the checksum of each applied step, as its text was at that time. */
  readonly checksums: ReadonlyMap<number, string>;
}

/**
 * Returns the version of the schema, or null when it holds no `store_info`.
 * @throws {ThroughlineError} STORE_FOREIGN for a table of that name that this package did not create
 */
export async function readVersion(place: MigrationPlace, run: RunStatement): Promise<SchemaVersion | null> {
  // The query reads the catalog, because the name cache may not know yet what another node has just created.
  const [there] = await run(
    `SELECT c.relkind = 'r' AND 2 = (SELECT count(*) FROM pg_attribute a
       WHERE a.attrelid = c.oid AND a.attname IN ('name', 'value') AND NOT a.attisdropped) AS has_columns
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'store_info'`,
    [place.schemaName],
  );
  if (there === undefined) return null;
  if (there["has_columns"] !== true) throw foreign(place);
  const rows = await run(`SELECT name, value FROM ${place.schema}.store_info`);
  const values = new Map(rows.map((row) => [String(row["name"]), String(row["value"])]));
  const [version, oldestProgram] = ["version", "oldest_program"].map((name) => Number(values.get(name)));
  const layout = values.get("layout");
  if (!isVersion(version) || !isVersion(oldestProgram) || (layout !== "plain" && layout !== "tenant"))
    throw foreign(place);
  const checksums = new Map<number, string>();
  for (const [name, value] of values)
    if (name.startsWith("checksum_")) checksums.set(Number(name.slice("checksum_".length)), value);
  return { version, layout, oldestProgram, checksums };
}

function isVersion(value: number | undefined): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

function foreign({ schemaName }: MigrationPlace): ThroughlineError {
  const message = `The schema ${schemaName} has a table store_info of another program; it was not changed.`;
  return refused("STORE_FOREIGN", message, { schema: schemaName });
}

/**
 * Accepts a newer schema if it still serves this program. The text of each applied step must equal the text in this
 * program. A step that changed later would leave two kinds of databases at one version.
 * @throws {ThroughlineError} STORE_VERSION_UNSUPPORTED; STORE_UNSUPPORTED for a schema of another layout
 */
export function assertKnown(
  { schemaName }: MigrationPlace,
  found: SchemaVersion | null,
  layout: LayoutName,
  steps: readonly SchemaStep[],
): void {
  if (found === null) return;
  if (found.layout !== layout)
    throw new ThroughlineError("STORE_UNSUPPORTED", `The schema ${schemaName} has the ${found.layout} layout.`, {
      outcome: "not-applied",
      details: { schema: schemaName, layout: found.layout, asked: layout },
      remedy: `Open it with layout: "${found.layout}", or without the option. Another layout needs a schema of its own.`,
    });
  const newest = steps.at(-1)?.version ?? 0;
  const { version, oldestProgram, checksums } = found;
  const details = { schema: schemaName, version, oldestProgram, newest };
  if (newest < oldestProgram)
    throw refused(
      "STORE_VERSION_UNSUPPORTED",
      `The schema ${schemaName} is at version ${version} and serves programs from ${oldestProgram} on; this build knows ${newest}.`,
      details,
    );
  const changed = steps.find((step) => step.version <= version && checksums.get(step.version) !== checksum(step));
  if (changed === undefined) return;
  throw refused(
    "STORE_VERSION_UNSUPPORTED",
    `Step ${changed.version} of the schema ${schemaName} was applied in other words than this build has for it.`,
    { ...details, step: changed.version, applied: checksums.get(changed.version) ?? null, known: checksum(changed) },
  );
}

async function setInfo({ schema }: MigrationPlace, run: RunStatement, name: string, value: string): Promise<void> {
  await run(
    `INSERT INTO ${schema}.store_info (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    [name, value],
  );
}

/** Hashes the text of the step for a fixed schema name and partition count, so that neither changes the checksum. */
function checksum(step: SchemaStep): string {
  return createHash("sha256")
    .update(step.sql("throughline", { partitions: 1 }))
    .digest("hex");
}
