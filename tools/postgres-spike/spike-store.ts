import { createHash } from "node:crypto";
import { ThroughlineError } from "../../packages/core/src/index.ts";
import type {
  AppendDraft,
  AppendOptions,
  AppendResult,
  ErrorCode,
  ReadOptions,
  RecordPage,
  SaveOptions,
  SessionEntry,
  SessionRef,
  SessionState,
} from "../../packages/core/src/index.ts";
import { systemClock, systemRecordIds } from "../../packages/core/src/node.ts";
import { defaultStoreLimits, draftsFingerprint, prepareDrafts } from "../../packages/core/src/store.ts";
import type { PreparedRecord } from "../../packages/core/src/store.ts";
import { appendStatement } from "./append-statement.ts";
import { loadStatement, readStatement, saveStatement } from "./other-statements.ts";
import { toColumns } from "./record-columns.ts";
import type { DatabaseRow, WatchedClient } from "./round-trips.ts";
import { toAppendResult, toReplayedResult, toSourcedRecord, toState } from "./row-values.ts";

/** The four operations of the contract that a turn is made of, each one statement. */
export interface SpikeStore {
  append(ref: SessionRef, drafts: readonly AppendDraft[], options?: AppendOptions): Promise<AppendResult>;
  read(
    ref: SessionRef,
    options?: ReadOptions<"source"> & { readonly pageBytes?: number },
  ): AsyncIterable<RecordPage<"source">>;
  load(ref: SessionRef): Promise<SessionState | null>;
  save(ref: SessionRef, entry: SessionEntry, options: SaveOptions): Promise<SessionState>;
}

const settled: ReadonlySet<unknown> = new Set(["APPLIED", "REPLAYED", "SAVED"]);

export function createSpikeStore(client: WatchedClient): SpikeStore {
  return {
    append(ref, drafts, options = {}) {
      const prepared = prepareDrafts(drafts, { ids: systemRecordIds, clock: systemClock, limits: defaultStoreLimits });
      return client.charge("append", async () => {
        const values = appendValues(ref, drafts, prepared, options);
        const parts = { isKeyed: options.idempotencyKey !== undefined, hasEntry: options.entry !== undefined };
        const name = `append${parts.isKeyed ? " keyed" : ""}${parts.hasEntry ? " with entry" : ""}`;
        const row = await run(client, name, appendStatement(parts), values, ref);
        if (row["verdict"] === "REPLAYED") return toReplayedResult(String(row["first_began"]), prepared);
        return toAppendResult(row, prepared, options, false);
      });
    },
    async *read(ref, options = {}) {
      const { afterSeq = 0, beforeSeq = Number.MAX_SAFE_INTEGER, order = "ascending" } = options;
      let [lower, upper, left] = [afterSeq, beforeSeq, options.limit ?? Number.MAX_SAFE_INTEGER];
      let sessionNo: unknown = null;
      while (left > 0) {
        const limit = Math.min(left, defaultStoreLimits.pageRecords);
        const pageBytes = options.pageBytes ?? defaultStoreLimits.pageBytes;
        const values = [...address(ref), lower, upper, limit, pageBytes, sessionNo];
        const result = await client.charge("read", () => client.query(`read ${order}`, readStatement(order), values));
        const first = result.rows[0];
        if (first === undefined) throw refused("SESSION_NOT_FOUND", ref, {});
        if (first["seq"] === null) return;
        const records = result.rows.map(toSourcedRecord);
        yield { records, lastSeq: Number(first["last_seq"]) };
        sessionNo = first["session_no"];
        left -= records.length;
        const reached = records.at(-1)?.seq ?? 0;
        if (order === "ascending") lower = reached;
        else upper = reached;
        if (
          order === "ascending"
            ? reached >= Math.min(Number(first["last_seq"]), beforeSeq - 1)
            : reached <= afterSeq + 1
        )
          return;
      }
    },
    load(ref) {
      return client.charge("load", async () => {
        const row = (await client.query("load", loadStatement, address(ref))).rows[0];
        return row === undefined ? null : toState(ref, row);
      });
    },
    save(ref, entry, options) {
      return client.charge("save", async () => {
        const fields = entryColumns(entry);
        const values = [...address(ref), options.ifRevision, entry.sessionId, ...fields, entry.updatedAt ?? null];
        const missing = options.ifRevision === null ? "REVISION_CONFLICT" : "SESSION_NOT_FOUND";
        return toState(ref, await run(client, "save", saveStatement, values, ref, missing));
      });
    },
  };
}

async function run(
  client: WatchedClient,
  name: string,
  text: string,
  values: readonly unknown[],
  ref: SessionRef,
  missing: ErrorCode = "SESSION_NOT_FOUND",
): Promise<DatabaseRow> {
  try {
    const row = (await client.query(name, text, values)).rows[0];
    if (row === undefined) throw refused(missing, ref, {});
    if (!settled.has(row["verdict"])) throw refused(String(row["verdict"]) as ErrorCode, ref, row);
    return row;
  } catch (error) {
    throw constraintRefusal(error, ref) ?? error;
  }
}

/** A unique index names what was taken; the server rolled the statement back before it answered. */
function constraintRefusal(error: unknown, ref: SessionRef): ThroughlineError | null {
  const { code, constraint } = error as { readonly code?: string; readonly constraint?: string };
  if (code !== "23505" || constraint === undefined) return null;
  if (constraint === "sessions_folded_id") return refused("ID_CASE_COLLISION", ref, { constraint });
  if (constraint === "sessions_id") return refused("SESSION_EXISTS", ref, { constraint });
  return constraint.endsWith("_session_no_id_key") ? refused("RECORD_ID_TAKEN", ref, { constraint }) : null;
}

function refused(code: ErrorCode, ref: SessionRef, row: DatabaseRow): ThroughlineError {
  const { entry_names: _names, entry_values: _values, ...state } = row;
  return new ThroughlineError(code, `${code} for ${JSON.stringify(ref.key)}.`, {
    outcome: "not-applied",
    details: state,
  });
}

function address(ref: SessionRef): readonly string[] {
  return [ref.namespace, ref.agentId, ref.key, ref.archiveId ?? ""];
}

/** Names and values as JSON texts: PostgreSQL's text holds no NUL and no lone surrogate, their escapes it does. */
function entryColumns(fields: Readonly<Record<string, unknown>>): readonly [string[], (string | null)[]] {
  const pairs = Object.entries(fields);
  const values = pairs.map(([, value]) => (value === undefined ? null : JSON.stringify(value)));
  return [pairs.map(([name]) => JSON.stringify(name)), values];
}

function appendValues(
  ref: SessionRef,
  drafts: readonly AppendDraft[],
  prepared: readonly PreparedRecord[],
  options: AppendOptions,
): readonly unknown[] {
  const { turn, expect, entry, rewindTo, idempotencyKey } = options;
  const opened = turn?.action === "open" ? turn : null;
  const records = toColumns(prepared);
  const [names, values] = entry === undefined ? [null, null] : entryColumns(entry);
  const isKeyed = idempotencyKey !== undefined;
  const digest = isKeyed ? createHash("sha256").update(draftsFingerprint(drafts)).digest("base64") : null;
  // The numbers are those of the statement's parameters.
  return [
    ...address(ref), // 1 to 4
    options.durability === undefined || options.durability === "disk" ? "on" : "off", // 5
    turn?.action ?? null, // 6
    records.lastMainId !== null, // 7
    turn?.fence ?? null, // 8
    opened?.turnId ?? null, // 9
    opened?.owner ?? null, // 10
    turn !== undefined && "leaseUntilMs" in turn ? turn.leaseUntilMs : null, // 11
    expect !== undefined, // 12
    expect?.head ?? null, // 13
    prepared.length, // 14
    rewindTo !== undefined, // 15
    rewindTo ?? null, // 16
    records.lastMainId, // 17
    names, // 18
    values, // 19
    options.windowFromSeq ?? null, // 20
    idempotencyKey ?? null, // 21
    digest, // 22
    entry?.["updatedAt"] ?? null, // 23
    records.ids, // 24
    records.tsMs, // 25
    records.parentIds, // 26
    records.types, // 27
    records.onHead, // 28
    records.sides, // 29
    records.timestamps, // 30
    records.bytes, // 31
    records.crcs, // 32
    records.rests, // 33
    records.sources, // 34
    isKeyed ? JSON.stringify(options) : null, // 35
  ];
}
