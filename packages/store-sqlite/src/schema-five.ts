/**
 * What an import keeps for itself lies in sessions without records, in a namespace of their own: `marksNamespace` of the
 * transfer package makes it, and lists leave it out. Whoever queries the file does not want it either. A session that has
 * records has its row, whatever it is called.
 */
const isForImports = `s.last_seq = 0 AND s.agent_id = 'main' AND substr(s.namespace, -8) = '.imports'
  AND substr(s.key, 1, 19) = 'agent:main:imports:'`;

/** The fifth step, as it ran: never to be changed once it was released. */
export const schemaFive: string = `
DROP VIEW sessions;
CREATE VIEW sessions AS
SELECT s.key, s.created_at_ms AS created_at, s.updated_at_ms AS updated_at,
  CASE WHEN typeof(e.entry) = 'text' THEN e.entry END AS metadata,
  s.namespace, s.agent_id, s.session_id, s.archived, s.revision, s.head_id, s.last_seq AS record_count, s.message_count
FROM store_sessions s JOIN store_entries e ON e.session = s.session
WHERE NOT (${isForImports});
`;
