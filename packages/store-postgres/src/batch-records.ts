import type { Layout } from "./layout.ts";

/** Few appends have more records. */
const mostValues = 4;

/**
 * Inserts the rows of any batch. Citus sends the rows of INSERT … SELECT through COPY, which costs more with every shard.
 * It sends VALUES as they are, so a short batch has a statement for its number of rows.
 */
export function batchRecords(schema: string, layout: Layout): string {
  const into = `INSERT INTO ${schema}.records (${layout.first("tenant")}session_no, seq, ts_ms, stored_at_ms, crc, bytes, message_number, side, form, id,
            parent_id, type, role, tool_name, rest, coded, source, rest_hash, source_hash)`;
  const together = `${into}
          SELECT ${recordValues(layout, (column) => `r.${column}`, "r.place")}
          FROM unnest(${Object.values(batchColumns).join(", ")}) WITH ORDINALITY AS r (${Object.keys(batchColumns).join(", ")}, place);`;
  if (layout.name === "plain") return together;
  const branches = Array.from({ length: mostValues }, (_, last) => {
    const rows = Array.from({ length: last + 1 }, (_, index) => {
      const place = index + 1;
      return `(${recordValues(layout, (column) => `${batchColumns[column]}[${place}]`, String(place))})`;
    });
    return `p_path = 3 AND p_record_count = ${rows.length} THEN
            ${into} VALUES ${rows.join(", ")};`;
  });
  return `IF ${branches.join("\n          ELSIF ")}
          ELSE
            ${together}
          END IF;`;
}

/** Lists the columns of a record in a batch, and the parameters that hold them. */
const batchColumns = {
  id: "p_ids",
  parent_id: "p_parents",
  type: "p_types",
  side: "p_sides",
  message_number: "p_message_numbers",
  ts_ms: "p_ts_ms",
  bytes: "p_bytes",
  crc: "p_crcs",
  role: "p_roles",
  tool_name: "p_tools",
  rest: "p_rests",
  coded: "p_codeds",
  form: "p_forms",
  source: "p_sources",
  rest_hash: "p_rest_hashes",
  source_hash: "p_source_hashes",
} as const;

/** Returns the values of a record. Those that depend on the head come from `s`, the row that the UPDATE returned. */
function recordValues(layout: Layout, of: (column: keyof typeof batchColumns) => string, place: string): string {
  const isNext = `${of("parent_id")} = E'\\x01'`;
  return `${layout.first("p_tenant")}s.session_no, s.last_seq - p_record_count + ${place}, ${of("ts_ms")}, s.appended_at_ms, ${of("crc")},
            CASE WHEN ${isNext} THEN ${of("bytes")} + s.prev_head_bytes ELSE ${of("bytes")} END,
            s.messages_ever - p_message_count + ${of("message_number")}, ${of("side")}, ${of("form")}, ${of("id")},
            CASE WHEN ${isNext} THEN s.prev_head_id ELSE ${of("parent_id")} END,
            ${of("type")}, ${of("role")}, ${of("tool_name")}, ${of("rest")}, ${of("coded")}, ${of("source")}, ${of("rest_hash")}, ${of("source_hash")}`;
}
