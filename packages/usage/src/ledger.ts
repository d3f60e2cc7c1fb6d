import type { DatabaseSync, StatementSync } from "node:sqlite";
import { ThroughlineError } from "@throughline/core";
import { builtinSqlite } from "@throughline/core/internal/node";
import { promptSteps } from "@throughline/tokens/internal";
import { ActivitySum, packActivity, unpackActivity, type ActivityCounts } from "./activity-counts.ts";
import { sumNames, type CountedCall, type CountState, type UsageGroup, type UsageSums } from "./count-calls.ts";

/** Identifies a session in the ledger and says what is counted of it. */
export interface LedgerSession {
  /** Is a hash, so that the ledger holds no name of a session. */
  readonly id: string;
  readonly createdAtMs: number;
  readonly lastSeq: number;
  /** Counts the messages as the store states them. A redaction of one lowers the count. */
  readonly messages: number;
  readonly state: CountState;
  /** Holds what the added records are besides calls. */
  readonly activity: readonly ActivityCounts[];
}

/** Says up to which record a session is counted. */
export type LedgerPosition = Pick<LedgerSession, "createdAtMs" | "lastSeq" | "messages">;

/** Holds the sums of one group of a session. */
export interface LedgerSums extends UsageGroup {
  readonly sums: Readonly<UsageSums>;
}

/** Changes with every change of the tables and of what they hold. */
const version = 2;

const sessionColumns = [
  "number integer primary key",
  "id text not null unique",
  "scope text not null",
  "created integer not null",
  "lastSeq integer not null",
  "messages integer not null",
  "lastQuarter integer not null",
  "state text not null",
  "groups text not null",
  "activity text not null",
];

const schema = [
  `create table session (${sessionColumns.join(", ")})`,
  "create table call (key integer primary key, session integer not null)",
  "create index callsOfSession on call (session)",
  "create index sessionsByTime on session (scope, lastQuarter)",
  "create table copy (owner integer, session integer, primary key (owner, session)) without rowid",
  "create table meta (steps text not null)",
  `pragma user_version = ${version}`,
];

const mostLookUps = 200;

type Row = Readonly<Record<string, string | number>>;

/**
 * Keeps the sums of each session, and which session owns each call. A call that several sessions have counts in the one
 * that was created first. The ledger is derived: it can be deleted at any time.
 */
export class UsageLedger {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  /** @param path a file, which is created with mode 0600; `:memory:` keeps nothing */
  constructor(path: string) {
    const sqlite = builtinSqlite();
    if (sqlite === undefined)
      throw new ThroughlineError("CAPABILITY_UNSUPPORTED", "This Node has no node:sqlite, which usage needs.", {
        remedy: "Use Node 22.18 or newer.",
      });
    this.#database = new sqlite.DatabaseSync(path);
    this.#database.exec("pragma busy_timeout = 5000; pragma journal_mode = wal; pragma synchronous = normal;");
    // SQLite overwrites what a purge removes from the ledger.
    this.#database.exec("pragma secure_delete = on");
    this.#within(() => this.#create());
  }

  #create(): void {
    const steps = promptSteps.join();
    const isCurrent =
      (this.#one("pragma user_version")?.["user_version"] ?? 0) === version &&
      this.#one("select steps from meta")?.["steps"] === steps;
    if (isCurrent) return;
    for (const table of ["session", "call", "copy", "meta"]) this.#database.exec(`drop table if exists ${table}`);
    this.#statements.clear();
    this.#database.exec(schema.join("; "));
    this.#run("insert into meta values (?)", steps);
  }

  /**
   * Says up to where sessions are counted, by id. `lastSeq` is -1 when one must be counted again.
   * @param ids the sessions; null for all of the scope
   */
  positions(scope: string, ids: readonly string[] | null): ReadonlyMap<string, LedgerPosition> {
    const rows = this.#rowsOf("id, lastSeq, messages, created", scope, ids);
    return new Map(
      rows.map(({ id, lastSeq, messages, created }) => [
        String(id),
        { lastSeq: Number(lastSeq), messages: Number(messages), createdAtMs: Number(created) },
      ]),
    );
  }

  /**
   * Returns a function that gives the sums of a session. The sums of a year are tens of thousands of objects, so those of
   * one session exist at a time.
   */
  sums(scope: string, ids: readonly string[]): (id: string) => readonly LedgerSums[] {
    const rows = this.#rowsOf("id, groups", scope, ids);
    const texts = new Map(rows.map(({ id, groups }) => [String(id), String(groups)]));
    return (id) => unpacked(texts.get(id) ?? "");
  }

  /** Returns the activity of each session, by id. */
  activities(scope: string, ids: readonly string[]): (id: string) => readonly ActivityCounts[] {
    const rows = this.#rowsOf("id, activity", scope, ids);
    const texts = new Map(rows.map(({ id, activity }) => [String(id), String(activity)]));
    return (id) => unpackActivity(texts.get(id) ?? "");
  }

  /** Returns the sums since a quarter of an hour, of all sessions of a scope. */
  sumsSince(scope: string, quarter: number): readonly LedgerSums[] {
    const rows = this.#all("select groups from session where scope = ? and lastQuarter >= ?", scope, quarter);
    return rows.flatMap(({ groups }) => unpacked(String(groups))).filter((sums) => sums.quarter >= quarter);
  }

  /** Few sessions are looked up one by one, many are read together. */
  #rowsOf(columns: string, scope: string, ids: readonly string[] | null): readonly Row[] {
    if (ids === null || ids.length > mostLookUps)
      return this.#all(`select ${columns} from session where scope = ?`, scope);
    const rows = ids.map((id) => this.#one(`select ${columns} from session where id = ?`, id));
    return rows.filter((row) => row !== undefined);
  }

  state(id: string): CountState | null {
    const row = this.#one("select state from session where id = ?", id);
    return row === undefined ? null : (JSON.parse(String(row["state"])) as CountState);
  }

  /** Removes a session. Sessions that have copies of its calls must be counted again. */
  forget(id: string): void {
    this.#within(() => this.#forget(id));
  }

  #forget(id: string): void {
    const number = this.#numberOf(id);
    if (number === null) return;
    this.#run("update session set lastSeq = -1 where number in (select session from copy where owner = ?)", number);
    this.#run("delete from copy where owner = ? or session = ?", number, number);
    this.#run("delete from call where session = ?", number);
    this.#run("delete from session where number = ?", number);
  }

  /** Adds the calls of the records after `fromSeq`. Changes nothing when another process has added them meanwhile. */
  add(scope: string, session: LedgerSession, fromSeq: number, calls: readonly CountedCall[]): void {
    this.#within(() => {
      const { id, createdAtMs, lastSeq, messages, state, activity } = session;
      if (fromSeq === 0) this.#forget(id);
      const row = this.#one("select lastSeq, groups, activity from session where id = ?", id);
      if (Number(row?.["lastSeq"] ?? 0) !== fromSeq) return;
      if (row === undefined)
        this.#run("insert into session values (null, ?, ?, ?, 0, 0, 0, '', '', '')", id, scope, createdAtMs);
      const number = this.#numberOf(id) as number;
      const groups = new Map(unpacked(String(row?.["groups"] ?? "[]")).map((one) => [groupKey(one), one]));
      const sum = new ActivitySum([...unpackActivity(String(row?.["activity"] ?? "")), ...activity]);
      for (const call of calls) if (this.#isOwned(number, session, call)) addTo(groups, call);
      this.#run(
        "update session set lastSeq = ?, messages = ?, lastQuarter = ?, state = ?, groups = ?, activity = ? where number = ?",
        lastSeq,
        messages,
        Math.max(0, ...[...groups.values()].map(({ quarter }) => quarter)),
        JSON.stringify(state),
        packed([...groups.values()]),
        packActivity(sum.counts()),
        number,
      );
    });
  }

  /** Whether the call counts here. A call that a later session owns moves here. */
  #isOwned(number: number, session: LedgerSession, { key, isFurtherPart }: CountedCall): boolean {
    const callKey = BigInt(`0x${key}`);
    const owner = this.#one(
      "select number, created, id from call join session on number = session where key = ?",
      callKey,
    );
    if (owner === undefined) {
      if (!isFurtherPart) this.#run("insert or replace into call values (?, ?)", callKey, number);
      return !isFurtherPart;
    }
    if (owner["number"] === number) return isFurtherPart;
    const [first, second] = isBefore(session, owner) ? [number, owner["number"]] : [owner["number"], number];
    this.#run("insert or ignore into copy values (?, ?)", first as number, second as number);
    if (first !== number || isFurtherPart) return false;
    this.#run("update call set session = ? where key = ?", number, callKey);
    this.#run("update session set lastSeq = -1 where number = ?", second as number);
    return true;
  }

  #numberOf(id: string): number | null {
    const row = this.#one("select number from session where id = ?", id);
    return row === undefined ? null : Number(row["number"]);
  }

  clear(): void {
    this.#within(() => {
      for (const table of ["session", "call", "copy"]) this.#run(`delete from ${table}`);
    });
  }

  close(): void {
    this.#database.close();
  }

  #within<Result>(work: () => Result): Result {
    this.#database.exec("begin immediate");
    try {
      const result = work();
      this.#database.exec("commit");
      return result;
    } catch (error) {
      this.#database.exec("rollback");
      throw error;
    }
  }

  #prepared(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) this.#statements.set(sql, (statement = this.#database.prepare(sql)));
    return statement;
  }

  #one(sql: string, ...values: readonly (string | number | bigint)[]): Row | undefined {
    return this.#prepared(sql).get(...values) as Row | undefined;
  }

  #all(sql: string, ...values: readonly (string | number)[]): readonly Row[] {
    return this.#prepared(sql).all(...values) as readonly Row[];
  }

  #run(sql: string, ...values: readonly (string | number | bigint)[]): void {
    this.#prepared(sql).run(...values);
  }
}

function isBefore({ createdAtMs, id }: LedgerSession, other: Row): boolean {
  const created = Number(other["created"]);
  return createdAtMs < created || (createdAtMs === created && id < String(other["id"]));
}

function groupKey({ quarter, provider, model, promptStep, isStated }: UsageGroup): string {
  return JSON.stringify([quarter, provider, model, promptStep, isStated]);
}

function addTo(groups: Map<string, LedgerSums>, { group, sums }: CountedCall): void {
  const before = groups.get(groupKey(group))?.sums;
  const after = Object.fromEntries(sumNames.map((name) => [name, (before?.[name] ?? 0) + (sums[name] ?? 0)]));
  groups.set(groupKey(group), { ...group, sums: after as UsageSums });
}

type PackedGroup = readonly [number, string | null, string | null, number, boolean, ...number[]];

/** A list of values takes a third of the space of an object. */
function packed(groups: readonly LedgerSums[]): string {
  return JSON.stringify(
    groups.map(({ quarter, provider, model, promptStep, isStated, sums }): PackedGroup => {
      return [quarter, provider, model, promptStep, isStated, ...sumNames.map((name) => sums[name])];
    }),
  );
}

function unpacked(text: string): readonly LedgerSums[] {
  if (text === "") return [];
  return (JSON.parse(text) as readonly PackedGroup[]).map(unpackedGroup);
}

function unpackedGroup([quarter, provider, model, promptStep, isStated, ...values]: PackedGroup): LedgerSums {
  const [calls = 0, doubtfulCalls = 0, milliseconds = 0, input = 0, cacheRead = 0, ...more] = values;
  const [cacheWrite = 0, cacheWrite1h = 0, output = 0, reasoning = 0, statedUsd = 0] = more;
  const tokens = { input, cacheRead, cacheWrite, cacheWrite1h, output, reasoning };
  // A year has tens of thousands of groups, and an object from a list of members takes ten times as long.
  const sums = { calls, doubtfulCalls, milliseconds, ...tokens, statedUsd };
  return { quarter, provider, model, promptStep, isStated, sums };
}
