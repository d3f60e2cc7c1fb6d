import type { Layout } from "./layout.ts";

export interface SchemaOptions {
  /** Sets the number of hash partitions of the records, which is fixed when the schema is created. */
  readonly partitions: number;
  /**
   * Splits every table of the tenant layout into partitions. This simulates a distributed server on one server, and
   * shows which parts a statement asks. An append then costs the server half as much again. @default false
   */
  readonly partsAll?: boolean;
  /** States whether Citus spreads the tables over nodes. Its shards then replace the partitions. */
  readonly isDistributed?: boolean;
}

export interface TableKind extends SchemaOptions {
  readonly layout: Layout;
}

/** Lists the tables with a tenant column, in the order of insertion. */
export const tenantTables: readonly string[] = [
  "agents",
  "sessions",
  "records",
  "payloads",
  "keyed_appends",
  "search_documents",
  "search_positions",
  "partials",
  "purged_sources",
  "files",
  "file_chunks",
  "file_references",
];

/** Lists the tables with a tenant column that the second step of the schema adds. */
export const vectorTables: readonly string[] = ["vector_sets", "vectors", "vector_progress", "vector_gaps"];

export function tenantColumn({ layout }: TableKind): string {
  return layout.name === "plain" ? "" : "\n  tenant bigint NOT NULL,";
}

/** Returns the end of a CREATE TABLE statement, and the statements of its partitions. */
export function behindTable(schema: string, table: string, kind: TableKind, storage = ""): string {
  const { layout, partitions, partsAll = false, isDistributed = false } = kind;
  const isPlain = layout.name === "plain";
  if (table !== "records" && (isPlain || !partsAll)) return `${storage};`;
  if (isPlain) return inPartitions(schema, table, "session_no", partitions, storage);
  if (isDistributed) return `${storage};`;
  return inPartitions(schema, table, "tenant", partitions, storage);
}

function inPartitions(schema: string, table: string, column: string, count: number, storage = ""): string {
  const parts = Array.from(
    { length: count },
    (_, index) =>
      `CREATE TABLE ${schema}.${table}_${index} PARTITION OF ${schema}.${table} FOR VALUES WITH (MODULUS ${count}, REMAINDER ${index})${storage};`,
  );
  return ` PARTITION BY HASH (${column});\n${parts.join("\n")}`;
}

/** These tables hold rows without a tenant, so every node has a whole copy. */
const referenceTables = ["search_state", "store_info"];

/** Spreads the tables over the nodes of Citus by tenant. */
export function distribute(schema: string): string {
  const name = (table: string): string => `'${schema}.${table}'`;
  const [first = "", ...others] = tenantTables;
  const root = `SELECT create_distributed_table(${name(first)}, 'tenant', colocate_with => 'none');`;
  const references = referenceTables.map((table) => `SELECT create_reference_table(${name(table)});`);
  // Citus notes a sequence that a column owns at the other nodes with the rights of the table's owner. It notes others by
  // a connection of its own, which sees only what is committed, and then refuses an owner that is no superuser.
  const owned = `ALTER SEQUENCE ${schema}.session_numbers OWNED BY ${schema}.sessions.session_no;`;
  // Citus else changes the shards over several connections, and refuses a function in the same transaction.
  const sequential = "SET LOCAL citus.multi_shard_modify_mode TO 'sequential';";
  return [sequential, owned, root, distributeTables(schema, others), ...references].join("\n");
}

/** Spreads further tables over the nodes as the first one. */
export function distributeTables(schema: string, tables: readonly string[]): string {
  return tables
    .map(
      (table) =>
        `SELECT create_distributed_table('${schema}.${table}', 'tenant', colocate_with => '${schema}.agents');`,
    )
    .join("\n");
}
