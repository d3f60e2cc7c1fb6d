import type { SessionState, SessionStore, ThroughlineError } from "@throughline/core";
import {
  assertKnownOptions,
  createWorkSlices,
  optionKinds,
  type OptionTable,
  sessionRow,
  type SessionRow,
} from "@throughline/core/internal";
import { pricesAsOf, type ModelPrices } from "@throughline/tokens/internal";
import { usageBlocks, type UsageBlock } from "./usage-blocks.ts";
import { UsageLedger, type LedgerSums } from "./ledger.ts";
import { refreshLedger, scopeOf } from "./refresh-ledger.ts";
import { isUndated, quarterOf, startOf, timeLabels } from "./time-labels.ts";
import { UsageSum, type UsageTotals } from "./usage-sums.ts";

/** Names what sums are grouped by. Days, weeks and months are those of the query's time zone. */
export type UsageKey = "day" | "week" | "month" | "session" | "model" | "program" | "folder" | "agent";

/** Sets which calls are counted, and how they are grouped. */
export interface UsageQuery {
  /** Names the namespace of the sessions. @default "" */
  readonly namespace?: string | undefined;
  /** Limits the sums to sessions of this agent. @default all agents */
  readonly agentId?: string | undefined;
  /** Groups the calls by one or two of these. @default one sum of all calls */
  readonly by?: readonly UsageKey[] | undefined;
  /** Leaves out calls before this time, in UTC milliseconds, rounded down to a quarter of an hour. */
  readonly sinceMs?: number | undefined;
  /** Leaves out calls at or after this time, in UTC milliseconds, rounded down to a quarter of an hour. */
  readonly untilMs?: number | undefined;
  /** Names the IANA time zone of days, weeks and months. @default the system's */
  readonly timeZone?: string | undefined;
  /** Limits the sums to calls of models whose name starts with this text. */
  readonly model?: string | undefined;
  /** Limits the sums to some sessions. @default all sessions */
  readonly isWanted?: ((row: SessionRow) => boolean) | undefined;
  /**
   * Reads only sessions that were active at or after this time, in UTC milliseconds. Calls of others are left out. It
   * makes the question after the last hours fast. @default all sessions
   */
  readonly activeSinceMs?: number | undefined;
  /** Aborts the call, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Holds the sums of one group. */
export interface UsageRow extends UsageTotals {
  /** Holds the group's value for each name of `by`. Null stands for an unknown time, model or folder. */
  readonly group: Readonly<Partial<Record<UsageKey, string | null>>>;
  /** States the name of the session, for rows by session; else null. */
  readonly name: string | null;
}

/** Holds the usage of sessions. */
export interface UsageReport {
  /** Holds the rows in the order of their groups; those without a time by falling cost. */
  readonly rows: readonly UsageRow[];
  /** Adds up all rows. */
  readonly total: UsageTotals;
  /** Lists the models without a known price, in alphabetical order. Null stands for calls without a model. */
  readonly unpricedModels: readonly (string | null)[];
  /** States the day of the prices, as `YYYY-MM-DD`. */
  readonly pricesAsOf: string;
  /** Lists the sessions that cannot be read as a whole, by key, with the error. */
  readonly unread: readonly { readonly agentId: string; readonly key: string; readonly error: ThroughlineError }[];
  /** States what was read for this answer. */
  readonly read: {
    /** Counts the sessions that were listed. */
    readonly sessions: number;
    /** Counts the records that no earlier answer had read. */
    readonly records: number;
  };
}

/** Holds what happened in the sessions of a store. */
export interface StoreActivity extends Pick<UsageReport, "unread"> {
  /** Lists the sessions that the query wants. */
  readonly sessions: readonly SessionActivity[];
}

/** Holds what happened in a session. */
export interface SessionActivity {
  /** Holds the session as the store listed it. */
  readonly state: SessionState;
  /** Adds up the calls of the session. */
  readonly usage: UsageTotals;
  /** Holds the counts by time. Times are starts of quarters of an hour, in UTC milliseconds. */
  readonly counts: readonly {
    readonly atMs: number;
    readonly messages: number;
    readonly toolCalls: number;
    readonly failedTools: number;
  }[];
}

/** Answers questions about the usage of the sessions of a store. */
export interface UsageReader {
  /**
   * Returns the sums of the calls in the store. Each call counts once, also if several sessions have a copy of it. Only
   * records that no earlier answer has read are read.
   * @throws {ThroughlineError} ABORTED, and what the store throws for a list
   */
  report(query?: UsageQuery): Promise<UsageReport>;
  /** Returns windows of five hours, the newest last, in which the calls of a query lie. */
  blocks(query?: UsageQuery): Promise<readonly UsageBlock[]>;
  /**
   * Returns what happened in each session that a query wants: its messages, its tools, and what its calls cost. A session
   * that is a copy of another has messages and tools of its own, while each call counts once.
   */
  activity(query?: Pick<UsageQuery, "namespace" | "agentId" | "isWanted" | "signal">): Promise<StoreActivity>;
  /** Forgets what was counted, so that the next answer reads every record. */
  clear(): void;
  /** Closes the file of the reader. */
  close(): void;
}

/** Sets where sums are kept, and what tokens cost. */
export interface UsageOptions {
  /** Names the file that keeps sums between processes. It can be deleted at any time. @default memory */
  readonly path?: string | undefined;
  /** Sets prices of models in US dollars per million tokens. They go before those of the catalog. @default none */
  readonly prices?: ModelPrices | undefined;
}

const { callback, filledText, listOf, number, object, oneOf, signal: abort, text } = optionKinds;
const usageTable: OptionTable<UsageOptions> = { path: filledText, prices: object };
const queryTable: OptionTable<UsageQuery> = {
  namespace: text,
  agentId: text,
  by: listOf(oneOf(["day", "week", "month", "session", "model", "program", "folder", "agent"])),
  sinceMs: number(),
  untilMs: number(),
  timeZone: text,
  model: text,
  isWanted: callback,
  activeSinceMs: number(),
  signal: abort,
};

/**
 * Opens the usage of a store.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option, here and in a query
 * @example
 *   const usage = openUsage(store);
 *   const { rows, total } = await usage.report({ by: ["day"] });
 */
export function openUsage(store: SessionStore, options: UsageOptions = {}): UsageReader {
  assertKnownOptions<UsageOptions>("openUsage", options, usageTable);
  const { path = ":memory:", prices = {} } = options;
  const ledger = new UsageLedger(path);
  return {
    report: async (query = {}) => reportOf(store, ledger, query, prices),
    blocks: async (query = {}) => {
      const { sessions } = await readGroups(store, ledger, query);
      return usageBlocks(
        sessions.flatMap(({ groups }) => groups()),
        prices,
      );
    },
    activity: async (query = {}) => activityOf(store, ledger, query, prices),
    clear: () => ledger.clear(),
    close: () => ledger.close(),
  };
}

interface SessionGroups {
  readonly id: string;
  readonly state: SessionState;
  /** Reads the sums of the calls that the query wants. */
  readonly groups: () => readonly LedgerSums[];
}

async function readGroups(
  store: SessionStore,
  ledger: UsageLedger,
  query: UsageQuery,
): Promise<{ readonly sessions: readonly SessionGroups[]; readonly read: Pick<UsageReport, "unread" | "read"> }> {
  assertKnownOptions<UsageQuery>("the usage of a store", query, queryTable);
  const { namespace = "", activeSinceMs, signal } = query;
  const { sessions, recordsRead, unread } = await refreshLedger(store, ledger, {
    namespace,
    ...(activeSinceMs === undefined ? {} : { sinceMs: activeSinceMs }),
    ...(signal === undefined ? {} : { signal }),
  });
  const wanted = sessions.filter(({ state }) => isWantedSession(query, state));
  const ids = wanted.map(({ id }) => id);
  const sums = ledger.sums(scopeOf(query), ids);
  const isCounted = callFilter(query);
  return {
    sessions: wanted.map(({ id, state }) => ({ id, state, groups: () => sums(id).filter(isCounted) })),
    read: { unread, read: { sessions: sessions.length, records: recordsRead } },
  };
}

function callFilter({ sinceMs = -Infinity, untilMs = Infinity, model }: UsageQuery): (sums: LedgerSums) => boolean {
  const [from, until] = [quarterOf(sinceMs), quarterOf(untilMs)];
  const wanted = model?.toLowerCase();
  return (sums) =>
    sums.quarter >= from &&
    sums.quarter < until &&
    (wanted === undefined || (sums.model ?? "unknown").toLowerCase().startsWith(wanted));
}

async function reportOf(
  store: SessionStore,
  ledger: UsageLedger,
  query: UsageQuery,
  prices: ModelPrices,
): Promise<UsageReport> {
  const { by = [], timeZone } = query;
  const label = labeller(timeZone);
  const { sessions, read } = await readGroups(store, ledger, query);
  const total = new UsageSum();
  const rows = new Map<string, { readonly head: Pick<UsageRow, "group" | "name">; readonly sum: UsageSum }>();
  const unpriced = new Set<string | null>();
  const slices = createWorkSlices();
  for (const { state, groups } of sessions) {
    const pause = slices.next();
    if (pause !== undefined) await pause;
    const row = by.some(isOfSession) ? sessionRow(state) : null;
    // An archived session may have the key of another one.
    const ownId = by.includes("session") ? [state.sessionId] : [];
    for (const sums of groups()) {
      if (!total.add(sums, prices)) unpriced.add(sums.model);
      if (by.length === 0) continue;
      const values = by.map((key) => label(key, row, sums));
      const id = [...values, ...ownId].join("\0");
      let found = rows.get(id);
      if (found === undefined) rows.set(id, (found = { head: headOf(by, values, row), sum: new UsageSum() }));
      found.sum.add(sums, prices);
    }
  }
  const summed = [...rows.values()].map(({ head, sum }) => ({ ...head, ...sum.totals() }));
  const unpricedModels = [...unpriced].toSorted((one, other) => compareTexts(one ?? "", other ?? ""));
  return { rows: summed.toSorted(inOrder(by)), total: total.totals(), unpricedModels, pricesAsOf, ...read };
}

async function activityOf(
  store: SessionStore,
  ledger: UsageLedger,
  query: UsageQuery,
  prices: ModelPrices,
): Promise<StoreActivity> {
  const { sessions, read } = await readGroups(store, ledger, query);
  const countsOf = ledger.activities(
    scopeOf(query),
    sessions.map(({ id }) => id),
  );
  const active = sessions.map(({ id, state, groups }): SessionActivity => {
    const sum = new UsageSum();
    for (const each of groups()) sum.add(each, prices);
    const counts = countsOf(id).map(({ quarter, ...rest }) => ({ atMs: startOf(quarter), ...rest }));
    return { state, usage: sum.totals(), counts };
  });
  return { sessions: active, unread: read.unread };
}

function headOf(
  by: readonly UsageKey[],
  values: readonly (string | null)[],
  row: SessionRow | null,
): Pick<UsageRow, "group" | "name"> {
  const group = Object.fromEntries(by.map((key, index) => [key, values[index] ?? null]));
  return { group, name: by.includes("session") ? (row?.name ?? null) : null };
}

/** Many sums have the same quarter of an hour, whose name takes a while to compute. */
function labeller(
  timeZone: string | undefined,
): (key: UsageKey, row: SessionRow | null, sums: LedgerSums) => string | null {
  const timeLabel = timeLabels(timeZone);
  const labels = { day: new Map<number, string>(), week: new Map<number, string>(), month: new Map<number, string>() };
  return (key, row, { quarter, model }) => {
    if (key === "model") return model;
    if (isOfSession(key)) return row === null ? null : sessionLabel(key, row);
    if (isUndated(quarter)) return null;
    let label = labels[key].get(quarter);
    if (label === undefined) labels[key].set(quarter, (label = timeLabel(key, quarter)));
    return label;
  };
}

type SessionKey = "session" | "program" | "folder" | "agent";

function isOfSession(key: UsageKey): key is SessionKey {
  return key === "session" || key === "program" || key === "folder" || key === "agent";
}

function sessionLabel(key: SessionKey, row: SessionRow): string | null {
  if (key === "session") return row.key;
  if (key === "program") return row.program ?? "own";
  return key === "folder" ? row.cwd : row.agentId;
}

function isWantedSession({ agentId, isWanted }: UsageQuery, state: SessionState): boolean {
  if (agentId !== undefined && state.ref.agentId !== agentId) return false;
  return isWanted === undefined || isWanted(sessionRow(state));
}

const timeKeys: ReadonlySet<UsageKey> = new Set(["day", "week", "month"]);

/** Times ascend; everything else begins with what cost most, then with what has most tokens. */
function inOrder(by: readonly UsageKey[]): (one: UsageRow, other: UsageRow) => number {
  return (one, other) => {
    for (const key of by.filter((name) => timeKeys.has(name))) {
      const order = compareTexts(one.group[key] ?? "", other.group[key] ?? "");
      if (order !== 0) return order;
    }
    const byCost = (other.costUsd ?? 0) - (one.costUsd ?? 0);
    const byTokens = tokensOf(other) - tokensOf(one);
    return byCost || byTokens || compareTexts(JSON.stringify(one.group), JSON.stringify(other.group));
  };
}

function tokensOf({ input, cacheRead, cacheWrite, output }: UsageTotals): number {
  return input + cacheRead + cacheWrite + output;
}

function compareTexts(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
