import type { Clock, RecordPage, SessionRef } from "@throughline/core";
import { followSession, type Reached, type Watched } from "@throughline/store-kit/internal";
import { sessionNotFound } from "@throughline/core/internal";
import { WatchHub } from "@throughline/store-kit";
import { addressOf } from "./append-records.ts";
import { arrayLiteral } from "./array-literal.ts";
import type { RunOptions } from "./connection-pool.ts";
import type { Layout } from "./layout.ts";
import { shareOf } from "./node-shares.ts";
import { fetchPage, pageOf } from "./read-pages.ts";
import type { DatabaseRow } from "./row-values.ts";
import type { SessionSignals } from "./session-signals.ts";
import type { StoreContext } from "./store-context.ts";

export interface WatchOptions {
  readonly afterSeq: number;
  readonly signal: AbortSignal;
}

export interface WatchContext {
  readonly context: StoreContext;
  readonly signals: SessionSignals | null;
  readonly hub: WatchHub<Reached>;
  /** @throws {ThroughlineError} STORE_CLOSED */
  check(): void;
}

const noSeq = Number.MAX_SAFE_INTEGER;

/** Limits the connections for reads of watches, so that the rest of the pool stays free for operations. */
const mostReads = 4;

interface HubOptions {
  readonly clock: Clock;
  readonly pollMs: number;
  readonly timeoutMs: number;
  readonly maxConnections: number;
  /** Opens the store, if it is not open. */
  ready(): Promise<void>;
}

/**
 * Creates the hub of all watches of a node. The node is null for a server without others. One statement each `pollMs`
 * checks all followed sessions, and finds what a lost signal did not report. Another one starts all watches that begin
 * together.
 */
export function createWatchHub(
  context: StoreContext,
  { clock, pollMs, timeoutMs, maxConnections, ready }: HubOptions,
  node: string | null,
): WatchHub<Reached> {
  const connections = node === null ? maxConnections : shareOf(maxConnections);
  const asked = { isRead: true, isFrequent: true, node: node ?? undefined };
  const { pool, schema } = context;
  return new WatchHub<Reached>({
    clock,
    pollMs,
    timeoutMs,
    mostReads: Math.max(1, Math.min(mostReads, connections - 1)),
    look: async (watched) => {
      await ready();
      const reached = new Map<string, number>();
      for (const { key, state } of watched)
        reached.set(key, Math.min(state.reachedSeq, reached.get(key) ?? noSeq, noSeq));
      const { layout, isDistributed } = context.found;
      const isSpread = isDistributed && layout.name === "tenant";
      const rows = await (isSpread ? seqsOfNodes : seqsBehind)(context, reached, asked);
      return rows.length === 0 ? [] : grown(watched, rows);
    },
    start: async (refs) => {
      await ready();
      const { layout, isDistributed } = context.found;
      const addresses = refs.map((ref) => addressOf(ref));
      const columns = [0, 1, 2, 3].map((column) => addresses.map((address) => address?.[column]));
      const tenants = layout.name === "plain" ? [] : [refs.flatMap((ref) => layout.values(ref))];
      const rows = await pool.run(
        `SELECT w.place, t.session_no, t.last_seq
         FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]${layout.last("$5::bigint[]")}) WITH ORDINALITY
           AS w (namespace, agent_id, key, archive_id${layout.last("tenant")}, place)
         JOIN ${schema}.sessions t ON t.namespace = w.namespace AND t.agent_id = w.agent_id AND t.key = w.key
           AND t.archive_id = w.archive_id${layout.and("t", "w.tenant")}${isDistributed ? layout.and("t", "ANY ($5::bigint[])") : ""}`,
        [...columns, ...tenants].map((column) => arrayLiteral(column)),
        asked,
      );
      const starts = new Map(
        rows.map((row) => {
          const place = Number(row["place"]);
          const key = watchKey(layout, refs[place - 1] as SessionRef, String(row["session_no"]));
          return [place, { key, lastSeq: Number(row["last_seq"]) }];
        }),
      );
      return refs.map((_, index) => starts.get(index + 1) ?? null);
    },
  });
}

/** Returns the hub's key of a session: its number, and the tenant where the layout has one. */
export function watchKey(layout: Layout, ref: SessionRef, sessionNo: string): string {
  return [sessionNo, ...layout.values(ref)].join(" ");
}

function placeOf(key: string): { readonly sessionNo: string; readonly tenant: string | undefined } {
  const [sessionNo = "", tenant] = key.split(" ");
  return { sessionNo, tenant };
}

/** Returns the last seqs of the sessions that have more than was reached. The seq is null for a session that is gone. */
function seqsBehind(
  { pool, schema, found: { layout } }: StoreContext,
  reached: ReadonlyMap<string, number>,
  asked: RunOptions,
): Promise<readonly DatabaseRow[]> {
  const places = [...reached.keys()].map(placeOf);
  const tenants = layout.name === "plain" ? [] : [arrayLiteral(places.map(({ tenant }) => tenant))];
  return pool.run(
    `SELECT w.no, t.last_seq FROM unnest($1::bigint[], $2::bigint[]${layout.last("$3::bigint[]")}) AS w (no, seq${layout.last("tenant")})
     LEFT JOIN ${schema}.sessions t ON t.session_no = w.no${layout.and("t", "w.tenant")}
     WHERE t.session_no IS NULL OR t.last_seq > w.seq`,
    [arrayLiteral(places.map(({ sessionNo }) => sessionNo)), arrayLiteral([...reached.values()]), ...tenants],
    asked,
  );
}

/**
 * Returns the last seq of every session that is followed. Citus would read all sessions of all nodes for the other
 * statement. This one asks the nodes of the tenants.
 */
async function seqsOfNodes(
  { pool, schema }: StoreContext,
  reached: ReadonlyMap<string, number>,
  asked: RunOptions,
): Promise<readonly DatabaseRow[]> {
  const places = [...reached.keys()].map(placeOf);
  const rows = await pool.run(
    `SELECT t.session_no AS no, t.last_seq FROM ${schema}.sessions t
     WHERE t.session_no = ANY ($1::bigint[]) AND t.tenant = ANY ($2::bigint[])`,
    [places.map(({ sessionNo }) => sessionNo), [...new Set(places.map(({ tenant }) => tenant))]].map(arrayLiteral),
    asked,
  );
  const found = new Map(rows.map((row) => [String(row["no"]), row]));
  return places.map(({ sessionNo }) => found.get(sessionNo) ?? { no: sessionNo, last_seq: null });
}

/** Returns the watches whose session has new records or is gone. */
function grown(watched: readonly Watched<Reached>[], rows: readonly DatabaseRow[]): readonly Watched<Reached>[] {
  const lastSeqs = new Map(rows.map((row) => [String(row["no"]), Number(row["last_seq"] ?? Infinity)]));
  return watched.filter(({ key, state }) => (lastSeqs.get(placeOf(key).sessionNo) ?? -1) > state.reachedSeq);
}

/** Follows a session from a seq on. The database signals changes where it can. */
export async function* watchSession(
  { context, signals, hub, check }: WatchContext,
  ref: SessionRef,
  { afterSeq, signal }: WatchOptions,
): AsyncGenerator<RecordPage> {
  // The refusal must concern this watch only, not all watches that begin together.
  if (addressOf(ref) === null) throw sessionNotFound(ref);
  yield* followSession(
    hub,
    ref,
    { afterSeq, signal },
    {
      read: async (key, reachedSeq) => {
        check();
        const sessionNo = key === null ? null : placeOf(key).sessionNo;
        const position = { sessionNo, afterSeq: Math.min(reachedSeq, noSeq), beforeSeq: noSeq, left: Infinity };
        const rows = await fetchPage(context, ref, position, { signal }, false);
        const page = (await pageOf(context, ref, rows, "record")) ?? {
          records: [],
          lastSeq: Number(rows[0]?.["session_last_seq"]),
        };
        return { ...page, key: key ?? watchKey(context.found.layout, ref, String(rows[0]?.["session_no"])) };
      },
      lookSoon: () => hub.lookSoon(),
      listen: (key) => signals?.add(placeOf(key).sessionNo, { wake: () => hub.wake(key) }) ?? (() => undefined),
      check,
    },
  );
}
