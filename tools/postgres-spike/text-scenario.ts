import assert from "node:assert/strict";
import type pg from "pg";

const values: readonly (readonly [name: string, text: string])[] = [
  ["escape \\u0000", '{"b":1.0,"a":"\\u0000"}'],
  ["raw NUL", '{"a":"\u0000"}'],
  ["escape \\ud800", '{"b":1.0,"a":"\\ud800"}'],
  ["raw lone surrogate", '{"a":"\ud800"}'],
  ["1e3, -0, key twice", '{"z":1e3,"a":-0,"a":9007199254740993}'],
];

const types = ["text", "json", "jsonb", "bytea"] as const;

/** What each column type makes of texts that transcripts do hold. Printed, and the lines that the store relies on asserted. */
export async function textScenario(client: pg.Client): Promise<readonly string[]> {
  const rows: string[][] = [["value", ...types, "json_each over json"]];
  for (const [name, text] of values) {
    const row = [name];
    for (const type of types) row.push(await roundTrip(client, type, text));
    row.push(
      await attempt(
        client,
        "SELECT string_agg(value::text, ',') AS back FROM json_each($1::text::json)",
        text,
        () => true,
      ),
    );
    rows.push(row);
  }
  const found = (name: string, type: (typeof types)[number]): string | undefined =>
    rows.find((row) => row[0] === name)?.[1 + types.indexOf(type)];
  // What the schema stands on: escapes live in text, raw bytes only in bytea, and nothing in jsonb.
  assert.equal(found("escape \\u0000", "text"), "kept");
  assert.equal(found("escape \\ud800", "text"), "kept");
  assert.equal(found("raw NUL", "text"), "refused 22021");
  assert.equal(found("raw NUL", "bytea"), "kept");
  assert.equal(found("escape \\u0000", "jsonb"), "refused 22P05");
  assert.equal(found("raw lone surrogate", "text"), "CHANGED");
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

function roundTrip(client: pg.Client, type: (typeof types)[number], text: string): Promise<string> {
  const value = type === "bytea" ? Buffer.from(text) : text;
  const sql = type === "bytea" ? "SELECT $1::bytea AS back" : `SELECT $1::text::${type}::text AS back`;
  return attempt(client, sql, value, (back) =>
    Buffer.isBuffer(back) ? back.equals(Buffer.from(text)) && Buffer.from(text).toString() === text : back === text,
  );
}

async function attempt(
  client: pg.Client,
  sql: string,
  value: string | Buffer,
  isKept: (back: unknown) => boolean,
): Promise<string> {
  try {
    const result = await client.query<{ back: unknown }>(sql, [value]);
    return isKept(result.rows[0]?.back) ? "kept" : "CHANGED";
  } catch (error) {
    const { code } = error as { readonly code?: string };
    if (code === undefined) throw error;
    return `refused ${code}`;
  }
}

/**
 * The line of every record, put together by the server from the head on, is the line that the client reads; and the
 * server's own crc32 (new in PostgreSQL 18) agrees with the writer's.
 */
export async function serverTextScenario(client: pg.Client): Promise<readonly string[]> {
  const line = `'{"type":' || to_json(type) || ',"id":' || to_json(id) || ',"parentId":' ||
    coalesce(to_json(parent_id)::text, 'null') || ',"timestamp":' || to_json(timestamp) || rest`;
  const result = await client.query<{ records: string; lengths: string; checksums: string }>(`
    SELECT count(*) AS records,
      count(*) FILTER (WHERE octet_length(coalesce(source, convert_to(${line}, 'UTF8'))) = bytes) AS lengths,
      count(*) FILTER (WHERE crc32(coalesce(source, convert_to(rest, 'UTF8'))) = crc) AS checksums
    FROM records`);
  const row = result.rows[0];
  assert(row !== undefined);
  assert.equal(row.lengths, row.records);
  assert.equal(row.checksums, row.records);
  return [
    `${row.records} lines put together by the server have the length the client's have; ${row.checksums} checksums agree`,
  ];
}
