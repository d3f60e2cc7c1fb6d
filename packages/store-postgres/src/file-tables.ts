import { behindTable, tenantColumn, type TableKind } from "./table-parts.ts";

/**
 * Creates the tables of files. A file has an id once all of it is there; without one it is an upload that arrives.
 *
 * A reference belongs to each session that shows its record, so a fork has its own. It repeats the namespace and the
 * agent, so that the references to a file are found without reading a session. `place` numbers the files of a record.
 *
 * The indexes hold `lower(file_id)`, which is the id. A condition on it never runs before a policy, because `lower` is not
 * leakproof. EXPLAIN ANALYZE would otherwise show a role whether another agent has a file with certain bytes. The price
 * is that a statement of such a role reads all rows of its agent.
 */
export const fileTables = (schema: string, kind: TableKind): string => `
CREATE TABLE ${schema}.files (${tenantColumn(kind)}
  upload text COLLATE "C" NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  file_id text COLLATE "C",
  bytes bigint,
  stored_at_ms bigint NOT NULL,
  PRIMARY KEY (upload${kind.layout.last("tenant")})
)${behindTable(schema, "files", kind)}
CREATE UNIQUE INDEX files_id ON ${schema}.files (namespace, agent_id, lower(file_id)${kind.layout.last("tenant")});
CREATE TABLE ${schema}.file_chunks (${tenantColumn(kind)}
  upload text COLLATE "C" NOT NULL,
  number integer NOT NULL,
  content bytea NOT NULL,
  PRIMARY KEY (upload, number${kind.layout.last("tenant")})
)${behindTable(schema, "file_chunks", kind)}
CREATE TABLE ${schema}.file_references (${tenantColumn(kind)}
  session_no bigint NOT NULL,
  seq bigint NOT NULL,
  place integer NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  file_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (session_no, seq, place${kind.layout.last("tenant")})
)${behindTable(schema, "file_references", kind)}
CREATE INDEX file_references_file ON ${schema}.file_references (namespace, agent_id, lower(file_id));
`;
