import { index, type SchemaObject, table } from "./schema-objects.ts";

/**
 * These tables are created when vectors are asked for the first time, because most stores never have any. A set is the vectors of
 * one model in one namespace and agent. `code` stands before `numbers`, so that a scan of codes reads no overflow page.
 */
export const vectorObjects: readonly SchemaObject[] = [
  table(
    "store_vector_sets",
    `CREATE TABLE store_vector_sets (
  vector_set INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  model TEXT NOT NULL
) STRICT`,
  ),
  index("store_vector_sets_model", "store_vector_sets", "(namespace, agent_id, model)", "UNIQUE INDEX"),
  table(
    "store_vectors",
    `CREATE TABLE store_vectors (
  vector INTEGER PRIMARY KEY AUTOINCREMENT,
  vector_set INTEGER NOT NULL REFERENCES store_vector_sets,
  session INTEGER NOT NULL REFERENCES store_sessions ON DELETE CASCADE,
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  part INTEGER NOT NULL,
  code BLOB NOT NULL,
  scale REAL NOT NULL,
  numbers BLOB NOT NULL
) STRICT`,
  ),
  index("store_vectors_set", "store_vectors", "(vector_set)"),
  index("store_vectors_session", "store_vectors", "(session, vector_set, last_seq)"),
  table(
    "store_vector_progress",
    `CREATE TABLE store_vector_progress (
  session INTEGER NOT NULL REFERENCES store_sessions ON DELETE CASCADE,
  vector_set INTEGER NOT NULL,
  covered_seq INTEGER NOT NULL,
  resume_seq INTEGER NOT NULL,
  PRIMARY KEY (session, vector_set)
) STRICT, WITHOUT ROWID`,
  ),
  table(
    "store_vector_gaps",
    `CREATE TABLE store_vector_gaps (
  session INTEGER NOT NULL REFERENCES store_sessions ON DELETE CASCADE,
  vector_set INTEGER NOT NULL,
  from_seq INTEGER NOT NULL,
  to_seq INTEGER NOT NULL,
  PRIMARY KEY (session, vector_set, from_seq)
) STRICT, WITHOUT ROWID`,
  ),
  table(
    "store_vector_removals",
    `CREATE TABLE store_vector_removals (
  session INTEGER PRIMARY KEY REFERENCES store_sessions ON DELETE CASCADE,
  removals INTEGER NOT NULL
) STRICT`,
  ),
];

/** The tables that refer to a session, with their primary keys. */
export const vectorSessionTables = [
  { table: "store_vectors", key: "vector" },
  { table: "store_vector_progress", key: "vector_set" },
  { table: "store_vector_gaps", key: "vector_set, from_seq" },
] as const;
