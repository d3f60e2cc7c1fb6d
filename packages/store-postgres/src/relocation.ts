import { ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import type { RunStatement } from "./connection-pool.ts";
import type { columnsOf } from "./copy-rows.ts";
import { keptCodec } from "./open-schema.ts";
import { beforeAll, numbersBehind, type TenantAgent } from "./layout.ts";
import { readSecurity } from "./row-security.ts";
import type { MovedCopy } from "./moved-copy.ts";
import { dropCopiedReferences } from "./relocate-files.ts";
import { refOf, type DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";

/** Reserves numbers for sessions that the source creates during the move. */
const numbersApart = 2n ** 32n;

/** Leaves room for numbers that other programs take from the target's sequence between two statements of this run. */
const numbersMeanwhile = 2n ** 20n;

/** At Citus the numbers that a node gives begin at its group times this. */
const numbersOfGroup = 2n ** 48n;

/** Limits those that the target reserves for each group, because all of them would leave no numbers for its own nodes. */
const numbersKept = 2n ** 33n;

/** Reserves numbers for groups that the source gets during the move. */
const groupsMeanwhile = 64n;

/**
 * Holds the range of numbers at the target that belongs to the source. The offset is added to each number of the
 * source. If the nodes of Citus gave the numbers, those of the groups follow each other.
 */
export interface NumberRange {
  readonly offset: bigint;
  readonly end: bigint;
  readonly isOfNodes: boolean;
}

export interface Relocation {
  readonly from: StoreContext;
  readonly to: StoreContext;
  readonly numbers: NumberRange;
  readonly columns: Readonly<Record<"sessions" | "records" | "keyed_appends", Awaited<ReturnType<typeof columnsOf>>>>;
  readonly check: () => void;
}

/** @throws {ThroughlineError} INPUT_INVALID, CODEC_FAILED, STORE_UNSUPPORTED */
export async function assertFitting(from: StoreContext, to: StoreContext): Promise<void> {
  const [ours, theirs] = [await identityOf(from), await identityOf(to)];
  if (ours === theirs) throw refused("INPUT_INVALID", "A schema cannot be moved to itself.", { schema: from.schema });
  const secured = [from, to].map(({ pool, schema, found }) =>
    pool.transaction((run) => readSecurity(schema, found.layout.name, run)),
  );
  const [sourceSecurity, targetSecurity] = await Promise.all(secured);
  if (sourceSecurity?.isSecured === true && targetSecurity?.isSecured !== true)
    throw new ThroughlineError(
      "STORE_UNSUPPORTED",
      "The source keeps agents apart by row security, and the target does not.",
      {
        outcome: "not-applied",
        details: { from: from.schema, to: to.schema },
        remedy: "Open the target once with rowSecurity: true, and give its roles their agents as the README says.",
      },
    );
  // In the plain layout a number alone decides who owns a row. A role of the source may have written any number into
  // its own tenant.
  if (sourceSecurity?.isSecured === true && from.found.layout.name === "tenant" && to.found.layout.name === "plain")
    throw new ThroughlineError(
      "STORE_UNSUPPORTED",
      "The source keeps agents apart by tenant, and the target is of the plain layout.",
      {
        outcome: "not-applied",
        details: { from: from.schema, to: to.schema },
        remedy: 'Move to a schema of the layout "tenant", or copy the sessions with throughline export and import.',
      },
    );
  const [given, kept] = [(await keptCodec(from)) ?? "", (await keptCodec(to)) ?? ""];
  if (given !== kept)
    throw refused("CODEC_FAILED", "Rows are moved as they lie: both schemas must have the same codec.", {
      given,
      kept,
    });
}

/** Identifies a schema among all databases by a random value that it keeps. */
async function identityOf({ pool, schema }: StoreContext): Promise<string> {
  await pool.run(
    `INSERT INTO ${schema}.store_info (name, value) VALUES ('identity', gen_random_uuid()::text) ON CONFLICT (name) DO NOTHING`,
    [],
  );
  const [row] = await pool.run(`SELECT value FROM ${schema}.store_info WHERE name = 'identity'`, [], { isRead: true });
  return String(row?.["value"]);
}

/**
 * Reserves the source's numbers at the target in the first run, so that no session of the target ever gets one of them.
 */
export async function rangeOf(from: StoreContext, to: StoreContext): Promise<NumberRange> {
  const name = `relocated_from_${await identityOf(from)}`;
  const isOfNodes = from.found.isDistributed;
  const span = isOfNodes ? await spanOfNodes(from) : await spanOfSequence(from);
  const sequence = `${to.schema}.session_numbers`;
  return to.pool.transaction(async (run) => {
    // The row lock lets one run at a time choose the range.
    await run(`SELECT FROM ${to.schema}.store_info WHERE name = 'version' FOR UPDATE`);
    const [kept] = await run(`SELECT value FROM ${to.schema}.store_info WHERE name = $1`, [name]);
    const [keptOffset = "", keptEnd = "", givenBy] = String(kept?.["value"] ?? "").split(" ");
    // A range that does not say who gave the numbers cannot be read, so another one is reserved.
    if (givenBy !== undefined)
      return { offset: BigInt(keptOffset), end: BigInt(keptEnd), isOfNodes: givenBy === "nodes" };
    const [next] = await run(`SELECT nextval('${sequence}') AS number`);
    const offset = BigInt(String(next?.["number"])) + numbersMeanwhile;
    const end = offset + span;
    await run(`SELECT setval('${sequence}', $1)`, [String(end)]);
    await run(
      `INSERT INTO ${to.schema}.store_info (name, value) VALUES ($1, $2)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      [name, `${offset} ${end} ${isOfNodes ? "nodes" : "sequence"}`],
    );
    return { offset, end, isOfNodes };
  });
}

async function spanOfSequence({ pool, schema }: StoreContext): Promise<bigint> {
  const [last] = await pool.run(`SELECT last_value FROM ${schema}.session_numbers`, [], { isRead: true });
  return BigInt(String(last?.["last_value"])) + numbersApart;
}

async function spanOfNodes({ pool }: StoreContext): Promise<bigint> {
  const [last] = await pool.run("SELECT max(groupid) AS group FROM pg_catalog.pg_dist_node", [], { isRead: true });
  return (BigInt(String(last?.["group"] ?? 0)) + 1n + groupsMeanwhile) * numbersKept;
}

/**
 * Removes copies of sessions that the source has purged since. Rows under a number of the source are copies while no
 * session of the target shows them.
 */
export async function dropLeftCopies({ from, to, numbers: range, check }: Relocation): Promise<void> {
  const { layout } = to.found;
  const copied = await to.pool.run(
    `SELECT DISTINCT r.session_no${layout.last("r.tenant")} FROM ${to.schema}.records r
     WHERE r.session_no > $1::bigint AND r.session_no <= $2::bigint
       AND NOT EXISTS (SELECT FROM ${to.schema}.sessions s WHERE s.session_no = r.session_no${layout.and("s", "r.tenant")})
       AND NOT EXISTS (SELECT FROM ${to.schema}.sessions s
         WHERE s.base_nos @> ARRAY[r.session_no]${layout.and("s", "r.tenant")})`,
    [String(range.offset), String(range.end)],
    { isRead: true },
  );
  if (copied.length === 0) return;
  const numberOf = (row: DatabaseRow): string => oldNumber(range, String(row["session_no"]));
  const numbers = copied.map(numberOf);
  const kept = await from.pool.run(
    `SELECT s.session_no, s.base_nos FROM ${from.schema}.sessions s
     WHERE s.session_no = ANY ($1::bigint[]) OR s.base_nos && $1::bigint[]`,
    [numbers],
    { isRead: true },
  );
  const known = new Set(
    kept.flatMap((row) => [row["session_no"], ...((row["base_nos"] ?? []) as readonly unknown[])].map(String)),
  );
  const left = copied.filter((row) => !known.has(numberOf(row)));
  const tenants = Map.groupBy(left, (row) => row["tenant"]);
  for (const [tenant, rows] of tenants) {
    await dropCopiedReferences(
      to,
      rows.map((row) => row["session_no"]),
      layout.name === "plain" ? [] : [tenant],
    );
    for (const table of ["records", "payloads"]) {
      check();
      await to.pool.run(
        `DELETE FROM ${to.schema}.${table} WHERE session_no = ANY ($1::bigint[])${layout.and("", "$2")}`,
        [rows.map((row) => row["session_no"]), ...(layout.name === "plain" ? [] : [tenant])],
      );
    }
  }
}

/** Holds the numbers of sessions that share records, and an agent of their tenant. */
export interface Family {
  readonly numbers: readonly string[];
  readonly agent: TenantAgent;
}

/** Returns the families, the most recently written one last. */
export async function families(
  { pool, schema, found: { layout } }: StoreContext,
  namespace: string | undefined,
  check: () => void,
): Promise<readonly Family[]> {
  const found = new Map<string, Family & { readonly numbers: string[]; updatedAtMs: number }>();
  for (let after: readonly string[] = beforeAll(layout); ;) {
    check();
    const rows = await pool.run(
      `SELECT session_no, coalesce(base_nos[1], session_no) AS root, updated_at_ms, namespace, agent_id FROM ${schema}.sessions t
       WHERE ($1::text IS NULL OR namespace = $1) AND ${numbersBehind(layout, 2)} LIMIT 1000`,
      [namespace ?? null, ...after],
      { isRead: true },
    );
    for (const row of rows) {
      const agent = refOf(row);
      const root = [row["root"], ...layout.values(agent)].join();
      const family = found.get(root) ?? { numbers: [], agent, updatedAtMs: 0 };
      family.numbers.push(String(row["session_no"]));
      family.updatedAtMs = Math.max(family.updatedAtMs, Number(row["updated_at_ms"]));
      found.set(root, family);
    }
    const last = rows.at(-1);
    if (last === undefined) break;
    after = [String(last["session_no"]), ...layout.values(refOf(last))];
  }
  return [...found.values()].toSorted((a, b) => a.updatedAtMs - b.updatedAtMs);
}

/** @throws {ThroughlineError} STORE_UNSUPPORTED for a number of a node of Citus beyond those that were reserved */
export function newNumber(
  { numbers: { offset, end, isOfNodes } }: Pick<Relocation, "numbers">,
  number: string,
): string {
  const old = BigInt(number);
  if (!isOfNodes) return String(old + offset);
  const [group, place] = [old / numbersOfGroup, old % numbersOfGroup];
  const moved = offset + group * numbersKept + place;
  if (place < numbersKept && moved <= end) return String(moved);
  throw refused("STORE_UNSUPPORTED", "The target has no number reserved for a session of the source.", { number });
}

function oldNumber({ offset, isOfNodes }: NumberRange, number: string): string {
  const moved = BigInt(number) - offset;
  if (!isOfNodes) return String(moved);
  return String((moved / numbersKept) * numbersOfGroup + (moved % numbersKept));
}

/** Tests whether the target has a session with such an address or id, or another spelling of the agent id. */
export async function isTaken(
  relocation: Relocation,
  members: readonly { readonly row: DatabaseRow; readonly movedFrom: MovedCopy | null }[],
  run: RunStatement,
): Promise<boolean> {
  const { to } = relocation;
  const { layout } = to.found;
  for (const { row, movedFrom } of members) {
    const number = newNumber(relocation, String(row["session_no"]));
    const ref = refOf(row);
    const archiveId = movedFrom?.archiveId ?? String(row["archive_id"]);
    const [held] = await run(
      `SELECT EXISTS (SELECT FROM ${to.schema}.sessions t WHERE t.namespace = $1 AND t.agent_id = $2${layout.and("t", "$7")}
           AND t.session_no <> $6
           AND (t.key = $3 AND t.archive_id = $4 OR lower(t.session_id) = lower($5)))
         OR EXISTS (SELECT FROM ${to.schema}.agents a WHERE a.namespace = $1 AND a.folded_id = lower($2)
           AND a.agent_id <> $2${layout.and("a", "$7")}) AS is_held`,
      [ref.namespace, ref.agentId, ref.key, archiveId, row["session_id"], number, ...layout.values(ref)],
    );
    if (held?.["is_held"] === true) return true;
  }
  return false;
}
