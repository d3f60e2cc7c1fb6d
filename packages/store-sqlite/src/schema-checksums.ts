/** The version of the schema from which on rows have checksums. */
export const schemaSixVersion = 6;

/**
 * The sixth step, as it ran: never to be changed once it was released. Checksums of what had none: the columns of a record
 * beside its content, the row of a session, and its entry. Rows that were there before get theirs when they are next written;
 * two rows of `store_info` state up to which numbers such rows lie.
 */
export const schemaSix = `
ALTER TABLE store_records ADD COLUMN head_crc INTEGER;
ALTER TABLE store_sessions ADD COLUMN crc INTEGER;
ALTER TABLE store_entries ADD COLUMN crc INTEGER;
INSERT INTO store_info (name, value) SELECT 'unchecked sessions', coalesce(max(session), 0) FROM store_sessions;
INSERT INTO store_info (name, value) SELECT 'unchecked records', coalesce(max(record), 0) FROM store_records;
`;
