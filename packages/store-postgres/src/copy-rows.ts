import type { RunStatement } from "./connection-pool.ts";
import type { Layout, TenantAgent } from "./layout.ts";
import type { DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";

/** Names a schema, or a transaction on it. */
export interface RowPlace {
  readonly run: RunStatement;
  /** Holds the name of the schema in quotes, because statements contain it. */
  readonly schema: string;
  readonly layout: Layout;
}

/** Returns the schema of a store, or a transaction on it. */
export function placeOf({ pool, schema, found }: StoreContext, run?: RunStatement): RowPlace {
  return { run: run ?? ((sql, values = []) => pool.run(sql, values)), schema, layout: found.layout };
}

/** Returns the schema of a store for statements that ask for the rows of one agent. */
export function placeOfAgent({ pool, schema, found }: StoreContext, agent: TenantAgent): RowPlace {
  return { run: (sql, values = []) => pool.run(sql, values, { agent }), schema, layout: found.layout };
}

/** Holds a stored column, and its type as a cast names it. */
interface Column {
  readonly name: string;
  readonly type: string;
}

/** These limits bound the memory of a copy: rows and bytes of records in one slice. */
const sliceRows = 500;
const sliceBytes = 8 * 1024 * 1024;

/** Returns the columns of a table without generated ones. */
export async function columnsOf(run: RunStatement, table: string): Promise<readonly Column[]> {
  const rows = await run(
    `SELECT quote_ident(attname) AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
     WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
     ORDER BY attnum`,
    [table],
  );
  return rows.map((row) => ({ name: String(row["name"]), type: String(row["type"]) }));
}

/** Reads columns as texts, because every type of the store's tables can be restored from its text. */
export function asTexts(columns: readonly Column[], row: string): string {
  return columns.map(({ name }) => `${row}.${name}::text AS ${name}`).join(", ");
}

/**
 * Inserts rows that were read as texts. An existing row is replaced, so a repeated copy has the same result. `key`
 * lists the columns of the table's key, and `where` limits which existing rows are replaced. Returns the number of
 * written rows.
 */
export async function insertTexts(
  { run, schema, layout }: RowPlace,
  into: {
    readonly table: string;
    readonly columns: readonly Column[];
    readonly key: readonly string[];
    readonly tenant: readonly string[];
    readonly where?: string;
  },
  rows: readonly DatabaseRow[],
): Promise<number> {
  if (rows.length === 0) return 0;
  const { table, columns, key, tenant, where = "" } = into;
  const from = tenant.length + 1;
  const names = columns.map(({ name }) => name);
  const changes = names.filter((name) => !key.includes(name)).map((name) => `${name} = excluded.${name}`);
  const written = await run(
    `INSERT INTO ${schema}.${table} AS o (${layout.first("tenant")}${names.join(", ")})
     SELECT ${layout.first("$1::bigint")}${columns.map(({ name, type }) => `u.${name}::${type}`).join(", ")}
     FROM unnest(${names.map((_name, index) => `$${index + from}::text[]`).join(", ")}) AS u (${names.join(", ")})
     ON CONFLICT (${[...key, ...(tenant.length === 0 ? [] : ["tenant"])].join(", ")}) DO UPDATE SET ${changes.join(", ")}${where}
     RETURNING 1`,
    [...tenant, ...names.map((name) => rows.map((row) => row[unquoted(name)] ?? null))],
  );
  return written.length;
}

function unquoted(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1) : name;
}

/** Names the rows to copy: their session number in each schema, and the values that are bound for the tenant. */
export interface CopiedNumber {
  readonly from: string;
  readonly to: string;
  readonly fromTenant: readonly string[];
  readonly toTenant: readonly string[];
}

/** Copies the records behind a seq, or those of given seqs. Returns their number. */
export async function copyRecords(
  source: RowPlace,
  target: RowPlace,
  number: CopiedNumber,
  { afterSeq = 0, seqs = null }: { readonly afterSeq?: number; readonly seqs?: readonly string[] | null },
  columns: readonly Column[],
  check: () => void,
): Promise<number> {
  let count = 0;
  for (let after = afterSeq; ;) {
    check();
    const rows = await source.run(
      `SELECT ${asTexts(columns, "r")} FROM (
         SELECT q.*, sum(q.bytes) OVER (ORDER BY q.seq ROWS UNBOUNDED PRECEDING) - q.bytes AS bytes_before FROM (
           SELECT * FROM ${source.schema}.records r WHERE r.session_no = $1 AND r.seq > $2
             AND ($3::bigint[] IS NULL OR r.seq = ANY ($3::bigint[]))${source.layout.and("r", "$4")}
           ORDER BY r.seq LIMIT ${sliceRows}) q) r
       WHERE r.bytes_before < ${sliceBytes} ORDER BY r.seq`,
      [number.from, after, seqs, ...number.fromTenant],
    );
    const last = rows.at(-1);
    if (last === undefined) return count;
    const into = { table: "records", columns, key: ["session_no", "seq"], tenant: number.toTenant };
    await insertTexts(
      target,
      { ...into, where: " WHERE o.crc <> excluded.crc" },
      rows.map((row) => ({ ...row, session_no: number.to })),
    );
    count += rows.length;
    after = Number(last["seq"]);
  }
}

/** Copies payloads that the target lacks. They are copied one at a time, because each may be large. */
export async function copyPayloads(
  source: RowPlace,
  target: RowPlace,
  number: CopiedNumber,
  check: () => void,
): Promise<void> {
  const hashesAt = async (
    { run, schema, layout }: RowPlace,
    no: string,
    tenant: readonly string[],
  ): Promise<string[]> => {
    const sql = `SELECT encode(hash, 'hex') AS hash FROM ${schema}.payloads WHERE session_no = $1${layout.and("", "$2")}`;
    return (await run(sql, [no, ...tenant])).map((row) => String(row["hash"]));
  };
  const there = new Set(await hashesAt(target, number.to, number.toTenant));
  const wanted = await hashesAt(source, number.from, number.fromTenant);
  for (const hash of wanted.filter((each) => !there.has(each))) {
    check();
    const [row] = await source.run(
      `SELECT content FROM ${source.schema}.payloads
       WHERE session_no = $1 AND hash = decode($2, 'hex')${source.layout.and("", "$3")}`,
      [number.from, hash, ...number.fromTenant],
    );
    if (row === undefined) continue;
    const { layout, schema } = target;
    await target.run(
      `INSERT INTO ${schema}.payloads (session_no, hash, content${layout.last("tenant")})
       VALUES ($1, decode($2, 'hex'), $3${layout.last("$4")}) ON CONFLICT DO NOTHING`,
      [number.to, hash, row["content"], ...number.toTenant],
    );
  }
  const gone = [...there].filter((hash) => !wanted.includes(hash));
  if (gone.length > 0)
    await target.run(
      `DELETE FROM ${target.schema}.payloads
       WHERE session_no = $1 AND encode(hash, 'hex') = ANY ($2::text[])${target.layout.and("", "$3")}`,
      [number.to, gone, ...number.toTenant],
    );
}

/** Returns the seqs whose records differ between the schemas: redacted since the copy, or missing at the target. */
export async function differingSeqs(
  source: RowPlace,
  target: RowPlace,
  number: CopiedNumber,
): Promise<readonly string[]> {
  const sumOf = async ({ run, schema, layout }: RowPlace, no: string, tenant: readonly string[]): Promise<string> => {
    const sql = `SELECT concat_ws(' ', count(*), sum(crc), sum(crc * seq)) AS sum FROM ${schema}.records
      WHERE session_no = $1${layout.and("", "$2")}`;
    return String((await run(sql, [no, ...tenant]))[0]?.["sum"]);
  };
  const [theirs, ours] = [
    await sumOf(source, number.from, number.fromTenant),
    await sumOf(target, number.to, number.toTenant),
  ];
  if (theirs === ours) return [];
  const crcsOf = async (
    { run, schema, layout }: RowPlace,
    no: string,
    tenant: readonly string[],
  ): Promise<Map<string, string>> => {
    const sql = `SELECT seq, crc FROM ${schema}.records WHERE session_no = $1${layout.and("", "$2")}`;
    return new Map((await run(sql, [no, ...tenant])).map((row) => [String(row["seq"]), String(row["crc"])]));
  };
  const there = await crcsOf(target, number.to, number.toTenant);
  const wanted = await crcsOf(source, number.from, number.fromTenant);
  return [...wanted].filter(([seq, crc]) => there.get(seq) !== crc).map(([seq]) => seq);
}

/** Copies the idempotency keys as they are now. */
export async function copyKeys(
  source: RowPlace,
  target: RowPlace,
  number: CopiedNumber,
  columns: readonly Column[],
): Promise<void> {
  const rows = await source.run(
    `SELECT ${asTexts(columns, "a")} FROM ${source.schema}.keyed_appends a WHERE a.session_no = $1${source.layout.and("a", "$2")}`,
    [number.from, ...number.fromTenant],
  );
  const into = { table: "keyed_appends", columns, key: ["session_no", "key"], tenant: number.toTenant };
  await insertTexts(
    target,
    into,
    rows.map((row) => ({ ...row, session_no: number.to })),
  );
}
