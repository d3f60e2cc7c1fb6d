/** What a role might send itself: the statement, and how it ends. `$agent`'s numbers are filled in. */
export const attacks: readonly (readonly [string, string, string])[] = [
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
  ["changes their open reply", "UPDATE partials SET content = '{}' WHERE session_no = $their", "0 rows"],
  ["takes their open reply", "UPDATE partials SET session_no = $own", "0 rows"],
  ["removes their open reply", "DELETE FROM partials WHERE session_no = $their", "0 rows"],
  ["ends their lease", "UPDATE leases SET until_ms = 0 WHERE name = 'their job'", "0 rows"],
];
