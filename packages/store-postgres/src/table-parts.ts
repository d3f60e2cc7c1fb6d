import type { Layout } from "./layout.ts";

export interface SchemaOptions {
  /** Hash partitions of the records; fixed when the schema is made. */
  readonly partitions: number;
  /**
   * Whether the tenant layout has every table in partitions: on one server that stands in for a distributed one, and shows
   * which parts a statement asks. An append costs the server half as much again then. @default false
   */
  readonly partsAll?: boolean;
  /** Whether the server itself spreads the tables of the tenant layout over nodes: its parts stand in place of partitions. */
  readonly isDistributed?: boolean;
}

export interface TableKind extends SchemaOptions {
  readonly layout: Layout;
}

/** The tables that hang on a tenant, in the order they are filled. */
export const tenantTables: readonly string[] = [
  "agents",
  "sessions",
  "records",
  "payloads",
  "keyed_appends",
  "search_documents",
  "search_positions",
  "partials",
];

export function tenantColumn({ layout }: TableKind): string {
  return layout.name === "plain" ? "" : "\n  tenant bigint NOT NULL,";
}

/** How the statement that makes a table ends, and its partitions. */
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

/** What is one on every node: rows that belong to no tenant. */
const referenceTables = ["search_state", "store_info"];

/** Spreads the tables over the nodes of Citus by tenant. */
export function distribute(schema: string): string {
  const name = (table: string): string => `'${schema}.${table}'`;
  const tables = tenantTables.map(
    (table, index) =>
      `SELECT create_distributed_table(${name(table)}, 'tenant', colocate_with => ${index === 0 ? "'none'" : name("agents")});`,
  );
  const references = referenceTables.map((table) => `SELECT create_reference_table(${name(table)});`);
  return [...tables, ...references].join("\n");
}
