import { requestOrder } from "../src/append-request.ts";
import type { LayoutName } from "../src/layout.ts";
import { theirs } from "./secured-store.ts";

/** Calls of a function, each with what comes of it. */
type Calls = Readonly<Record<string, readonly (readonly [sql: string, result: string])[]>>;

/** Every function of a schema, called by a role with what belongs to another agent, and what must come of it. */
export function functionCalls({
  schema,
  layout,
  theirNumber,
  theirTenant,
  theirUpload,
}: {
  readonly schema: string;
  readonly layout: LayoutName;
  readonly theirNumber: string;
  readonly theirTenant: string;
  readonly theirUpload: string;
}): Calls {
  const s = `"${schema}"`;
  const request = requestOrder.map((field) => {
    const values: Readonly<Record<string, string>> = {
      agent_id: theirs.agentId,
      key: theirs.key,
      lock_timeout: "1s",
      record_count: "0",
      message_count: "0",
      is_flushed: "true",
    };
    return field === "namespace" || field === "archive_id" ? "''" : field in values ? `'${values[field]}'` : "NULL";
  });
  const first = layout === "plain" ? "" : `${theirTenant}, `;
  const append = (path: number): string =>
    `SELECT ${s}.append_1(${first}${path}, ARRAY[${request.join(", ")}], '{}', ${Array.from({ length: 22 }, () => "NULL").join(", ")})`;
  const page = (number: string): string =>
    `SELECT * FROM ${s}.read_page_1(${first}'', 'other', '${theirs.key}', '', ${number}, false, 0, 999, true, 100, 1000000, 2)`;
  const save = (revision: string): string =>
    `SELECT * FROM ${s}.save_1(${first}'', 'other', '${theirs.key}', '', true, '1s', ${revision}, 'mine', true, '{}', '{}', NULL, NULL, NULL)`;
  const policies: Calls = {
    // Of a trigger alone.
    drop_partial_1: [[`SELECT ${s}.drop_partial_1()`, "0A000"]],
    is_own_1: [[`SELECT ${s}.is_own_1(${theirNumber}) = ${s}.is_own_1(987654321) AS same`, "1 rows"]],
    serves_1: [[`SELECT ${s}.serves_1('other') = ${s}.serves_1('nobody at all') AS same`, "1 rows"]],
    holds_1: [[`SELECT ${s}.holds_1(${theirNumber}) = ${s}.holds_1(987654321) AS same`, "1 rows"]],
    holds_file_1: [[`SELECT ${s}.holds_file_1('${theirUpload}') = ${s}.holds_file_1('nobody''s') AS same`, "1 rows"]],
    shares_own_1: [
      [
        `SELECT ${s}.shares_own_1(ARRAY[${theirNumber}::bigint], '{1}', '{x}', 'other') = ${s}.shares_own_1(ARRAY[987654321::bigint], '{1}', '{x}', 'other') AS same`,
        "1 rows",
      ],
    ],
  };
  const ofOther = `${s}.tenant_of_1('', 'other')`;
  const tenantPolicies: Calls = {
    serves_tenant_1: [[`SELECT ${s}.serves_tenant_1(${ofOther}) = ${s}.serves_tenant_1(987654321) AS same`, "1 rows"]],
    tenant_of_1: [[`SELECT 1 WHERE ${ofOther} = ${theirTenant === "" ? 0 : theirTenant}`, "1 rows"]],
    role_of_1: [[`SELECT 1 WHERE ${s}.role_of_1('', 'other') = 'tl_${theirTenant}'`, "1 rows"]],
    sound_bases_1: [
      [`SELECT ${s}.sound_bases_1('{1}', '{1}', '{x}') <> ${s}.sound_bases_1('{1}', '{1,2}', '{x}') AS same`, "1 rows"],
    ],
  };
  return {
    append_1: [0, 1, 2].map((path) => [append(path), "1 rows"] as const),
    read_page_1: [
      [page("NULL"), "0 rows"],
      [page(theirNumber), "0 rows"],
    ],
    read_window_1: [
      [`SELECT * FROM ${s}.read_window_1(${first}'', 'other', '${theirs.key}', '', 100, 1000000)`, "0 rows"],
    ],
    save_1: [
      [save("1"), "1 rows"],
      [save("NULL"), "42501"],
    ],
    ...(layout === "plain" ? policies : tenantPolicies),
    json_of_1: [[`SELECT ${s}.json_of_1('{"a": 1}'), ${s}.json_of_1('{')`, "1 rows"]],
    record_json_1: [
      [
        `SELECT 1 WHERE ${s}.record_json_1(${first}${theirNumber}, 1) IS NULL AND ${s}.record_json_1(${first}987654321, 1) IS NULL`,
        "1 rows",
      ],
    ],
    better_summary_1: [[`SELECT 1 WHERE ${s}.better_summary_1(${first}${theirNumber}, 0, 'x') IS NULL`, "1 rows"]],
    has_retry_1: [
      [
        `SELECT 1 WHERE NOT ${s}.has_retry_1(${first}${theirNumber}, 'x') AND NOT ${s}.has_retry_1(${first}987654321, 'x')`,
        "1 rows",
      ],
    ],
    store_now_ms: [[`SELECT ${s}.store_now_ms()`, "1 rows"]],
    row_now_ms: [[`SELECT ${s}.row_now_ms(1)`, "1 rows"]],
    patched_names: [[`SELECT ${s}.patched_names('{}', '{}', '{a}', '{1}')`, "1 rows"]],
    entry_excess_1: [[`SELECT ${s}.entry_excess_1('{a}', '{1}')`, "1 rows"]],
    patch_excess_1: [[`SELECT ${s}.patch_excess_1('{}', '{}', '{a}', '{1}')`, "1 rows"]],
    note_erased_words_1: [[`SELECT ${s}.note_erased_words_1()`, "1 rows"]],
    patched_values: [[`SELECT ${s}.patched_values('{}', '{}', '{a}', '{1}')`, "1 rows"]],
  };
}
