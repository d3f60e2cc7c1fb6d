/**
 * The request travels as one array of texts, because each parameter of a statement costs time. A boolean that is left
 * out is false.
 */
export const requestFields = {
  namespace: "text",
  agent_id: "text",
  key: "text",
  archive_id: "text",
  lock_timeout: "text",
  is_flushed: "boolean",
  record_count: "integer",
  message_count: "integer",
  is_head_set: "boolean",
  new_head: "text",
  new_head_bytes: "integer",
  is_active: "boolean",
  window_from: "bigint",
  // The fields from here on are rarely used. Trailing nulls are not sent.
  has_expect: "boolean",
  expected_head: "text",
  turn: "text",
  turn_fence: "double precision",
  turn_id: "text",
  turn_owner: "text",
  turn_until: "double precision",
  is_refused: "boolean",
  idem_key: "text",
  digest: "bytea",
  made_at_ms: "bigint",
  durability: "text",
  has_entry: "boolean",
  claimed_ms: "double precision",
  for_session_id: "text",
  for_revision: "bigint",
  sets_source: "boolean",
  source_digest: "text",
  // The files to which records of the batch refer, and the numbers of these records in the batch.
  file_ids: "text[]",
  file_records: "integer[]",
} as const;

/** Holds the records of the batch column by column, and values that are too large for a text of the request. */
export const batchFields = {
  ids: "text[]",
  parents: "text[]",
  types: "text[]",
  sides: "boolean[]",
  message_numbers: "integer[]",
  ts_ms: "bigint[]",
  bytes: "integer[]",
  crcs: "bigint[]",
  roles: "text[]",
  tools: "text[]",
  // The lines of a batch without imported lines travel in one text, because an array literal would escape each of their
  // quotes.
  joined_rests: "text",
  rests: "text[]",
  codeds: "bytea[]",
  forms: "smallint[]",
  sources: "bytea[]",
  rest_hashes: "bytea[]",
  source_hashes: "bytea[]",
  payload_hashes: "bytea[]",
  payloads: "bytea[]",
  given_ids: "text[]",
  names: "text[]",
  vals: "text[]",
  coded_entry: "bytea",
} as const;

export type RequestField = keyof typeof requestFields;
export type BatchField = keyof typeof batchFields;

export const requestOrder: readonly RequestField[] = Object.keys(requestFields) as RequestField[];
export const batchOrder: readonly BatchField[] = Object.keys(batchFields) as BatchField[];

/** In `parents` this marks the head, which only the statement knows. No id begins with a control character. */
export const headMarker = "\u0001";

/** The answer is one text with these fields in this order, because each column of an answer costs time. */
export const answerFields = {
  verdict: "text",
  now_ms: "bigint",
  session_no: "bigint",
  session_id: "text",
  revision: "bigint",
  last_seq: "bigint",
  head_id: "text",
  prev_head_id: "text",
  window_seq: "bigint",
  fence: "bigint",
  turn_id: "text",
  turn_owner: "text",
  lease_until_ms: "double precision",
  updated_at_ms: "bigint",
  first_ids: "json",
  first_parents: "json",
  first_sides: "json",
  first_ts: "json",
  first_at: "bigint",
  first_durability: "text",
} as const;

export const answerNames: readonly (keyof typeof answerFields)[] = Object.keys(
  answerFields,
) as (keyof typeof answerFields)[];

/**
 * Separates the fields of the answer and the lines of a batch. No column except `parents` contains control characters,
 * and JSON escapes them. An empty field is null, because no column of the answer is empty.
 */
export const separator = "\u001f";

/**
 * States which path of the function serves an append. Path 1 serves records without imported lines that move the head,
 * without conditions. Path 2 also allows a turn, an expected head, or side records only. Path 0 serves all others.
 * Paths 1 and 2 run one statement unless a condition fails. Path 3 is path 0 for Citus, with other words for a short
 * batch.
 */
export type AppendPath = 0 | 1 | 2 | 3;

export function readAnswer(text: string): Readonly<Record<string, string | null>> {
  const row: Record<string, string | null> = {};
  for (const [index, part] of text.split(separator).entries())
    row[answerNames[index] ?? ""] = part === "" ? null : part;
  return row;
}
