import { mostExact } from "./policy-parts.ts";
import { behindTable, distributeTables, tenantColumn, type TableKind, vectorTables } from "./table-parts.ts";

/**
 * Creates the tables of vectors. A set is the vectors of one model in one namespace and agent. Its row gives the vectors
 * their numbers and stays locked until the commit, so that no reader meets a higher number before a lower one.
 *
 * A vector repeats the names of its set, so that a scan of codes reads no other table. No index holds a part of a vector,
 * because the text can be guessed from it. `vector_gaps` lists records whose vectors a removal took. `vector_removals`
 * counts the removals of content that a session shows; a batch that was read before one of them is refused.
 */
export const vectorStep = (schema: string, kind: TableKind): string => {
  const { layout, isDistributed = false } = kind;
  const set = `
  namespace text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,`;
  return `
ALTER TABLE ${schema}.sessions ADD COLUMN vector_removals bigint NOT NULL DEFAULT 0;
CREATE TABLE ${schema}.vector_sets (${tenantColumn(kind)}${set}
  last_number bigint NOT NULL CHECK (last_number BETWEEN 0 AND ${mostExact}),
  PRIMARY KEY (namespace, agent_id, model${layout.last("tenant")})
)${behindTable(schema, "vector_sets", kind)}
CREATE TABLE ${schema}.vectors (${tenantColumn(kind)}${set}
  number bigint NOT NULL CHECK (number BETWEEN 1 AND ${mostExact}),
  session_no bigint NOT NULL,
  first_seq bigint NOT NULL CHECK (first_seq BETWEEN 0 AND ${mostExact}),
  last_seq bigint NOT NULL CHECK (last_seq BETWEEN 0 AND ${mostExact}),
  part integer NOT NULL,
  scale double precision NOT NULL,
  code bytea NOT NULL,
  numbers bytea NOT NULL,
  PRIMARY KEY (namespace, agent_id, model, number${layout.last("tenant")})
)${behindTable(schema, "vectors", kind)}
CREATE INDEX vectors_session ON ${schema}.vectors (session_no, last_seq);
CREATE TABLE ${schema}.vector_progress (${tenantColumn(kind)}
  session_no bigint NOT NULL,
  model text COLLATE "C" NOT NULL,
  covered_seq bigint NOT NULL CHECK (covered_seq BETWEEN 0 AND ${mostExact}),
  resume_seq bigint NOT NULL CHECK (resume_seq BETWEEN 0 AND ${mostExact}),
  PRIMARY KEY (session_no, model${layout.last("tenant")})
)${behindTable(schema, "vector_progress", kind)}
CREATE TABLE ${schema}.vector_gaps (${tenantColumn(kind)}
  session_no bigint NOT NULL,
  model text COLLATE "C" NOT NULL,
  from_seq bigint NOT NULL CHECK (from_seq BETWEEN 0 AND ${mostExact}),
  to_seq bigint NOT NULL CHECK (to_seq BETWEEN 0 AND ${mostExact}),
  PRIMARY KEY (session_no, model, from_seq${layout.last("tenant")})
)${behindTable(schema, "vector_gaps", kind)}
ALTER TABLE ${schema}.vectors ALTER COLUMN scale SET STATISTICS 0, ALTER COLUMN code SET STATISTICS 0, ALTER COLUMN numbers SET STATISTICS 0;
${layout.name === "tenant" && isDistributed ? distributeTables(schema, vectorTables) : ""}`;
};
