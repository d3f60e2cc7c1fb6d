import type { LayoutName } from "../src/layout.ts";

/** A role's own statement, and how it ends. What has a `$` is filled in. */
type Attack = readonly [name: string, sql: string, outcome: string];

const plainAttacks: readonly Attack[] = [
  [
    "shares their records with its own session",
    "UPDATE sessions SET base_nos = ARRAY[$their], base_to_seqs = ARRAY[99], base_ids = ARRAY['x'] WHERE session_no = $own",
    "42501",
  ],
  [
    "begins a session that shares their records",
    "INSERT INTO sessions (session_no, namespace, agent_id, key, session_id, revision, created_at_ms, updated_at_ms, base_nos, base_to_seqs, base_ids) VALUES (nextval('session_numbers'), '', 'main', 'k', 'k', 1, 0, 0, ARRAY[$their], ARRAY[99], ARRAY['x'])",
    "42501",
  ],
  [
    "takes the number of a purged session that their fork shares",
    "UPDATE sessions SET session_no = $purged WHERE session_no = $own",
    "42501",
  ],
  [
    "takes a number that is yet to be given out",
    "UPDATE sessions SET session_no = 1000000 WHERE session_no = $own",
    "42501",
  ],
  ["gives its session to their agent", "UPDATE sessions SET agent_id = 'other' WHERE session_no = $own", "42501"],
  [
    "puts a record into their session",
    "INSERT INTO records (session_no, seq, stored_at_ms, crc, bytes, message_number, side, id, type) VALUES ($their, 99, 0, 0, 0, 0, false, 'x', 'message')",
    "42501",
  ],
  [
    "moves its record into their session",
    "UPDATE records SET session_no = $their, seq = 99 WHERE session_no = $own",
    "42501",
  ],
  [
    "takes the name of their agent",
    "INSERT INTO agents (namespace, folded_id, agent_id) VALUES ('x', 'other', 'main')",
    "42501",
  ],
  ["gives itself their agent", "INSERT INTO agent_roles (role_name, agent_id) VALUES (current_user, 'other')", "42501"],
  ["turns its agent into theirs", "UPDATE agent_roles SET agent_id = 'other'", "0 rows"],
  ["gives up everybody's agents", "DELETE FROM agent_roles", "0 rows"],
  ["turns the store into another one", "UPDATE store_info SET value = 'x'", "42501"],
  ["takes the searches' state away from all", "DELETE FROM search_state", "0 rows"],
  [
    "takes the number of another session",
    "INSERT INTO sessions (session_no, namespace, agent_id, key, session_id, revision, created_at_ms, updated_at_ms) SELECT $their, '', 'main', 'k', 'k', 1, 0, 0 FROM nextval('session_numbers')",
    "42501",
  ],
  [
    "takes the number of a purged session",
    "INSERT INTO sessions (session_no, namespace, agent_id, key, session_id, revision, created_at_ms, updated_at_ms) SELECT $purged, '', 'main', 'k', 'k', 1, 0, 0 FROM nextval('session_numbers')",
    "42501",
  ],
  ["changes what is not its own in a partition", "UPDATE records_$partition SET rest = ''", "0 rows"],
  ["deletes what is not its own in a partition", "DELETE FROM records_$partition", "0 rows"],
  [
    "puts a record into their session through a partition",
    "INSERT INTO records_$partition (session_no, seq, stored_at_ms, crc, bytes, message_number, side, id, type) VALUES ($their, 99, 0, 0, 0, 0, false, 'x', 'message')",
    "42501",
  ],
  ["says that everything is indexed", "UPDATE search_state SET caught_up_slot = 1000000000", "42501"],
  ["turns row security off", "SET row_security = off; SELECT * FROM records", "42501"],
  ["changes what is not its own", "UPDATE records SET rest = '' WHERE session_no = $their", "0 rows"],
  ["deletes what is not its own", "DELETE FROM sessions WHERE session_no = $their", "0 rows"],
  [
    "puts an open reply into their session",
    "INSERT INTO partials (session_no, fence, turn_id, content) VALUES ($their, 1, 't', '{}') ON CONFLICT (session_no) DO UPDATE SET content = '{}'",
    "42501",
  ],
  [
    "puts a file into their agent",
    "INSERT INTO files (upload, namespace, agent_id, stored_at_ms) VALUES ('x', '', 'other', 0)",
    "42501",
  ],
  ["gives its file to their agent", "UPDATE files SET agent_id = 'other'", "42501"],
  ["gives its file a size that no program reads", "UPDATE files SET bytes = -1", "42501"],
  ["takes their files", "UPDATE files SET agent_id = 'main' WHERE agent_id = 'other'", "0 rows"],
  ["deletes their files", "DELETE FROM files WHERE agent_id = 'other'", "0 rows"],
  ["changes the chunks of their files", "UPDATE file_chunks SET content = '' WHERE upload = '$upload'", "0 rows"],
  ["deletes the chunks of their files", "DELETE FROM file_chunks WHERE upload = '$upload'", "0 rows"],
  ["reads the chunks of their files", "SELECT content FROM file_chunks WHERE upload = '$upload'", "0 rows"],
  [
    "adds a chunk to their file",
    "INSERT INTO file_chunks (upload, number, content) VALUES ('$upload', 1, '')",
    "42501",
  ],
  ["moves its chunks into their file", "UPDATE file_chunks SET upload = '$upload', number = 1", "42501"],
  ["deletes what they refer to", "DELETE FROM file_references WHERE session_no = $their", "0 rows"],
  [
    "refers to a file for their session",
    "INSERT INTO file_references (session_no, seq, namespace, agent_id, file_id) VALUES ($their, 99, '', 'main', 'x')",
    "42501",
  ],
  [
    "refers to a file of their agent",
    "INSERT INTO file_references (session_no, seq, namespace, agent_id, file_id) VALUES ($own, 99, '', 'other', 'x')",
    "42501",
  ],
  ["changes their open reply", "UPDATE partials SET content = '{}' WHERE session_no = $their", "0 rows"],
  ["takes their open reply", "UPDATE partials SET session_no = $own", "0 rows"],
  ["removes their open reply", "DELETE FROM partials WHERE session_no = $their", "0 rows"],
  [
    "marks a source as purged by their agent",
    "INSERT INTO purged_sources (namespace, source_digest, agent_id, purged_at_ms) VALUES ('', 'x', 'other', 1)",
    "42501",
  ],
  ["forgets what they purged", "DELETE FROM purged_sources WHERE agent_id = 'other'", "0 rows"],
  [
    "takes the marks of what they purged",
    "UPDATE purged_sources SET agent_id = 'main' WHERE agent_id = 'other'",
    "0 rows",
  ],
];

const insertSession = (values: string): string =>
  `INSERT INTO sessions (tenant, session_no, namespace, agent_id, key, session_id, revision, created_at_ms, updated_at_ms, entry_names, entry_values) VALUES (${values}, 'k', 'k', 1, 0, 0, '{}', '{}')`;
const insertRecord = (table: string, tenant: string): string =>
  `INSERT INTO ${table} (tenant, session_no, seq, stored_at_ms, crc, bytes, message_number, side, id, type) VALUES (${tenant}, $their, 99, 0, 0, 0, 0, false, 'x', 'message')`;

const tenantAttacks: readonly Attack[] = [
  ["begins a session in their tenant", insertSession("$theirtenant, 77, '', 'other'"), "42501"],
  ["begins a session of its own agent in their tenant", insertSession("$theirtenant, 77, '', 'main'"), "42501"],
  ["begins a session of their agent in its own tenant", insertSession("$tenant, 77, '', 'other'"), "42501"],
  ["begins a session of its agent in another namespace", insertSession("$tenant, 77, 'x', 'main'"), "42501"],
  ["begins a session below the numbers of all", insertSession("$tenant, 0, '', 'main'"), "42501"],
  ["moves its session into their tenant", "UPDATE sessions SET tenant = $theirtenant WHERE session_no = $own", "42501"],
  [
    "moves its session, its agent and its tenant",
    "UPDATE sessions SET tenant = $theirtenant, agent_id = 'other' WHERE session_no = $own",
    "42501",
  ],
  ["gives its session to their agent", "UPDATE sessions SET agent_id = 'other' WHERE session_no = $own", "42501"],
  ["puts a record into their session", insertRecord("records", "$theirtenant"), "42501"],
  ["puts a record into their session through a partition", insertRecord("records_$partition", "$tenant"), "42501"],
  ["moves its records into their tenant", "UPDATE records SET tenant = $theirtenant, session_no = $their", "42501"],
  ["moves its replies into their tenant", "UPDATE keyed_appends SET tenant = $theirtenant", "0 rows"],
  [
    "takes the name of their agent",
    "INSERT INTO agents (tenant, namespace, folded_id, agent_id) VALUES ($theirtenant, '', 'other', 'main')",
    "42501",
  ],
  [
    "takes another spelling of their agent into its own tenant",
    "INSERT INTO agents (tenant, namespace, folded_id, agent_id) VALUES ($tenant, 'x', 'other', 'OTHER')",
    "42501",
  ],
  ["takes their tenant's role", 'SET ROLE "tl_$theirtenant"', "42501"],
  ["gives itself their tenant's role", 'GRANT "tl_$theirtenant" TO CURRENT_USER', "42501"],
  ["makes a role of its own", 'CREATE ROLE "tl_1"', "42501"],
  ["reads their tenant by its number", "SELECT FROM records WHERE tenant = $theirtenant", "0 rows"],
  [
    "puts an open reply into their session",
    "INSERT INTO partials (tenant, session_no, fence, turn_id, content) VALUES ($theirtenant, $their, 1, 't', '{}') ON CONFLICT (session_no, tenant) DO UPDATE SET content = '{}'",
    "42501",
  ],
  [
    "marks a source as purged by their agent",
    "INSERT INTO purged_sources (tenant, namespace, source_digest, agent_id, purged_at_ms) VALUES ($theirtenant, '', 'x', 'other', 1)",
    "42501",
  ],
  [
    "marks a source as purged by their agent in its own tenant",
    "INSERT INTO purged_sources (tenant, namespace, source_digest, agent_id, purged_at_ms) VALUES ($tenant, '', 'x', 'other', 1)",
    "42501",
  ],
  [
    "puts a file into their tenant",
    "INSERT INTO files (tenant, upload, namespace, agent_id, stored_at_ms) VALUES ($theirtenant, 'x', '', 'other', 0)",
    "42501",
  ],
  [
    "puts a file of their agent into its own tenant",
    "INSERT INTO files (tenant, upload, namespace, agent_id, stored_at_ms) VALUES ($tenant, 'x', '', 'other', 0)",
    "42501",
  ],
  [
    "puts a file into another namespace",
    "INSERT INTO files (tenant, upload, namespace, agent_id, stored_at_ms) VALUES ($tenant, 'x', 'x', 'main', 0)",
    "42501",
  ],
  ["moves its chunks into their tenant", "UPDATE file_chunks SET tenant = $theirtenant", "42501"],
  [
    "adds a chunk to their file in their tenant",
    "INSERT INTO file_chunks (tenant, upload, number, content) VALUES ($theirtenant, '$upload', 1, '')",
    "42501",
  ],
  [
    "refers to a file in their tenant",
    "INSERT INTO file_references (tenant, session_no, seq, namespace, agent_id, file_id) VALUES ($theirtenant, $their, 99, '', 'other', 'x')",
    "42501",
  ],
  [
    "indexes words of theirs",
    "INSERT INTO search_positions (tenant, session_no, indexed_seq) VALUES ($theirtenant, $their, 99)",
    "42501",
  ],
];

/** These do not depend on how a row belongs to an agent. */
const inBoth = new Set([
  "turns the store into another one",
  "takes the searches' state away from all",
  "changes what is not its own in a partition",
  "deletes what is not its own in a partition",
  "says that everything is indexed",
  "turns row security off",
  "changes what is not its own",
  "deletes what is not its own",
  "changes their open reply",
  "removes their open reply",
  "gives its file to their agent",
  "gives its file a size that no program reads",
  "takes their files",
  "deletes their files",
  "changes the chunks of their files",
  "deletes the chunks of their files",
  "reads the chunks of their files",
  "deletes what they refer to",
  "forgets what they purged",
]);

/** What a role might send itself, by the layout of the schema. */
export const attacks: Readonly<Record<LayoutName, readonly Attack[]>> = {
  plain: plainAttacks,
  tenant: [...plainAttacks.filter(([name]) => inBoth.has(name)), ...tenantAttacks],
};
