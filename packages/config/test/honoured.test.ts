import { describe, expect, it } from "vitest";
import type { ListQuery, SessionStore } from "@throughline/core";
import { readRetries } from "@throughline/compaction/internal";
import { sessionSettings } from "@throughline/config";
import { settingTables } from "../src/setting-tables.ts";
import { createOpenclawSessions } from "@throughline/openclaw-compat";
import { resolveSendPolicy } from "@throughline/policy";
import { createMemoryStore } from "@throughline/store-memory";
import { converse, type Seen, type Talk } from "./converse.ts";
import { resolve } from "./resolve.ts";

/** A setting, two values of it, a conversation that shows the difference, and where it is looked for. */
interface Case {
  readonly area: string;
  readonly key: string;
  readonly values: readonly [unknown, unknown];
  /** Other settings of the conversation, by area. @default none */
  readonly beside?: Readonly<Record<string, object>>;
  readonly talk?: Talk;
  readonly see: (seen: Seen) => unknown;
}

const quiet = { checkpoint: { enabled: false }, memoryFlush: { enabled: false } };
const compactions = ({ records }: Seen) => records.filter(({ type }) => type === "compaction");
const firstCompactionSeq = (seen: Seen): unknown => compactions(seen)[0]?.seq;
const keptAtFirst = (seen: Seen): unknown => {
  const [first] = compactions(seen);
  const keptId = first?.record["firstKeptEntryId"];
  const kept = seen.records.find(({ id }) => id === keptId)?.seq ?? 0;
  return seen.records.filter(({ seq, type }) => type === "message" && seq >= kept && seq < (first?.seq ?? 0)).length;
};
const asked = (use: "summary" | "checkpoint") => (seen: Seen) =>
  seen.asked.filter((one) => one.for === use).map(({ name }) => name);
const flushPrompts = ({ records }: Seen) =>
  records
    .map(({ record }) => record["message"] as { readonly source?: string; readonly content?: string } | undefined)
    .filter((message) => message?.source === "flush")
    .map((message) => message?.content);
const systems = ({ requests }: Seen) => new Set(requests.map(({ system }) => system)).size;
const retriesOf = ({ entry }: Seen) => readRetries(entry);
const small = { reserveTokens: 0, reserveFloorTokens: 0, keepRecentTokens: 0, minMessages: 0, retryIntervalSeconds: 0 };
const marked = (percent: number) => [{ percent, prompt: "At {percent}%: memory/YYYY-MM-DD.md.", injectAs: "user" }];
const ollama = { model: "tiny" };
const poor: Talk = { helpers: "fail", turns: 30, stepMs: 61_000 };

/** Key, values, what stands beside it in its area, the talk, and where it shows. */
type Row = readonly [string, readonly [unknown, unknown], object, Talk, Case["see"]];
/** The same without anything beside it. */
type ShortRow = readonly [string, readonly [unknown, unknown], Talk, Case["see"]];

const rows = <Kind extends Row | ShortRow>(...given: readonly Kind[]): readonly Kind[] => given;

const resets = ({ events }: Seen): unknown => events.filter(({ name }) => name === "session.reset").length;
// The conversation begins at 23:30 UTC.
const slow: Talk = { turns: 3, stepMs: 20 * 60_000 };

const cases: readonly Case[] = [
  ...rows<Row>(
    ["mode", ["never", "idle"], {}, { turns: 2, stepMs: 61 * 60_000 }, resets],
    ["idleMinutes", [10, 30], { mode: "idle" }, slow, resets],
    ["atHour", [0, 12], { mode: "daily" }, slow, resets],
  ).map(([key, values, beside, talk, see]) => ({ area: "reset", key, values, beside: { reset: beside }, talk, see })),
  // The session of these conversations is a direct one of the channel cli.
  ...rows<ShortRow>(
    [
      "resetByType",
      [{ group: { mode: "idle", idleMinutes: 10 } }, { dm: { mode: "idle", idleMinutes: 10 } }],
      slow,
      resets,
    ],
    ["resetByChannel", [{ slack: { idleMinutes: 10 } }, { cli: { idleMinutes: 10 } }], slow, resets],
    ["titles", ["rules", "off"], { turns: 1 }, ({ entry }) => entry["title"]],
  ).map(([key, values, talk, see]) => ({ area: "", key, values, talk, see })),
  ...rows<Row>(
    ["reserveTokens", [500, 4500], { ...small }, {}, firstCompactionSeq],
    ["reserveFloorTokens", [500, 4500], { ...small }, {}, firstCompactionSeq],
    ["maxMessages", [10, 16], {}, { windowTokens: 0 }, firstCompactionSeq],
    ["keepPercent", [0, 20], { ...small, emergencyKeepPercent: 20 }, {}, keptAtFirst],
    ["emergencyKeepPercent", [0, 20], { ...small, keepPercent: 0 }, { helpers: "fail" }, keptAtFirst],
    ["inAdvance", [true, false], { ...small, reserveTokens: 5000 }, {}, firstCompactionSeq],
    [
      "background",
      [true, false],
      { ...small, reserveTokens: 5000 },
      { tokensPerTurn: 500, turns: 40 },
      firstCompactionSeq,
    ],
    ["mostKeptPercent", [10, 60], { ...small, keepPercent: 80, emergencyKeepPercent: 80 }, {}, keptAtFirst],
    ["minMessages", [0, 8], { ...small, keepPercent: 0 }, {}, keptAtFirst],
    ["keepRecentTokens", [0, 4000], { ...small, keepPercent: 0 }, {}, keptAtFirst],
    ["maxSummaryTokens", [200, 1500], { ...small }, {}, (seen) => seen.asked[0]?.maxOutputTokens],
    ["maxDetailTokens", [0, 300], { ...small }, {}, (seen) => JSON.stringify(compactions(seen)[0]?.record).length],
    ["deadlineMs", [1234, 2345], { ...small }, { helpers: "hang", sleepsAreOver: true }, ({ sleeps }) => sleeps],
    ["retryIntervalSeconds", [7, 9], { ...small }, {}, ({ sleeps }) => sleeps],
    [
      "retryMaxAttempts",
      [1, 5],
      { ...small, retryIntervalSeconds: 60, retryFirstDelayMs: 1, retryMaxDelayMs: 1 },
      poor,
      retriesOf,
    ],
    ["retryFirstDelayMs", [100_000, 200_000], { ...small, retryIntervalSeconds: 60 }, poor, retriesOf],
    ["retryMaxDelayMs", [3000, 9000], { ...small, retryIntervalSeconds: 60, retryFirstDelayMs: 3000 }, poor, retriesOf],
    ["summaryModels", [["x/one"], ["y/two"]], { ...small }, {}, asked("summary")],
    ["fallbackToMain", [true, false], { ...small, summaryModels: ["x/one"] }, { helpers: "fail" }, asked("summary")],
    ["ollamaFailureThreshold", [1, 3], { ...small, ollama }, { helpers: "fail", turns: 60 }, asked("summary")],
    [
      "ollamaResetMinutes",
      [1, 600],
      { ...small, ollama, ollamaFailureThreshold: 1 },
      { helpers: "fail", turns: 60, stepMs: 120_000 },
      asked("summary"),
    ],
  ).map(([key, values, others, talk, see]): Case => ({
    area: "compaction",
    key,
    values,
    beside: { ...quiet, compaction: others },
    talk,
    see,
  })),
  ...rows<ShortRow>(
    ["url", ["http://one", "http://two"], {}, (seen) => seen.asked[0]?.baseUrl],
    ["model", ["one", "two"], {}, asked("summary")],
    ["timeoutSeconds", [3, 5], { helpers: "hang", sleepsAreOver: true }, ({ sleeps }) => sleeps],
    // A window that the conversation does not fit takes it part by part.
    ["contextTokens", [4096, 200_000], {}, asked("summary")],
  ).map(([key, values, talk, see]): Case => ({
    area: "compaction.ollama",
    key,
    values,
    beside: { ...quiet, compaction: small },
    talk,
    see,
  })),
  ...rows<Row>(
    ["enabled", [true, false], {}, {}, asked("checkpoint")],
    ["model", ["x/one", "y/two"], {}, {}, asked("checkpoint")],
    ["fallbackToMain", [true, false], { model: "x/one" }, { helpers: "fail" }, asked("checkpoint")],
    [
      "tokenThresholdPercents",
      [[10], [10, 20, 30]],
      { turnThreshold: 1000, minTokensForGen: 0 },
      {},
      asked("checkpoint"),
    ],
    ["turnThreshold", [3, 6], { tokenThresholdPercents: [], minTokensForGen: 0 }, {}, asked("checkpoint")],
    ["minTokensForGen", [0, 9000], { turnThreshold: 1, tokenThresholdPercents: [] }, {}, asked("checkpoint")],
    ["deadlineMs", [1234, 2345], { turnThreshold: 1, minTokensForGen: 0 }, {}, ({ sleeps }) => sleeps],
  ).map(([key, values, others, talk, see]): Case => ({
    area: "checkpoint",
    key,
    values,
    beside: { memoryFlush: { enabled: false }, compaction: { retryIntervalSeconds: 0 }, checkpoint: others },
    talk,
    see,
  })),
  ...rows<Row>(
    ["enabled", [true, false], {}, {}, flushPrompts],
    ["showInSystemPrompt", [true, false], {}, {}, systems],
    ["thresholds", [marked(20), marked(40)], {}, {}, flushPrompts],
    // Half past eleven in the evening in London is the next day in Tokyo.
    ["timeZone", ["Europe/London", "Asia/Tokyo"], { thresholds: marked(40) }, {}, flushPrompts],
    [
      "memoryFolder",
      ["memory", "notes"],
      { thresholds: marked(20) },
      { toolCalls: { name: "write", path: "notes/a.md", times: 20 }, turns: 5 },
      ({ entry }) => entry,
    ],
    [
      "writeTools",
      [["write"], ["put"]],
      { thresholds: marked(20) },
      { toolCalls: { name: "put", path: "memory/a.md", times: 20 }, turns: 5 },
      ({ entry }) => entry,
    ],
  ).map(([key, values, others, talk, see]): Case => ({
    area: "memoryFlush",
    key,
    values,
    beside: { checkpoint: { enabled: false }, compaction: { retryIntervalSeconds: 0 }, memoryFlush: others },
    talk,
    see,
  })),
  ...rows<ShortRow>(
    [
      "maxSteps",
      [2, 4],
      { toolCalls: { name: "read", path: "a", times: 99 }, turns: 1 },
      ({ requests }) => requests.length,
    ],
    [
      "parallelTools",
      [true, false],
      { toolCalls: { name: "read", path: "a", times: 1, both: true }, turns: 1 },
      ({ toolLog }) => toolLog,
    ],
    ["leaseMs", [9000, 60_000], { turns: 1 }, ({ records }) => JSON.stringify(records).match(/leaseUntilMs":\d+/g)],
    ["restore", ["compact", "cut"], { turns: 10, shrinksTo: 8000 }, ({ events }) => events.map(({ name }) => name)],
    ["warnAtPercents", [[20], [60]], {}, ({ events }) => events.map(({ name }) => name)],
    ["showContextLine", [true, false], { turns: 1 }, ({ requests }) => requests[0]?.system],
  ).map(([key, values, talk, see]): Case => ({
    area: "turn",
    key,
    values,
    beside: { ...quiet, compaction: { retryIntervalSeconds: 0 } },
    talk,
    see,
  })),
  {
    area: "compaction",
    key: "preferCheckpoint",
    values: [true, false],
    beside: {
      memoryFlush: { enabled: false },
      checkpoint: { tokenThresholdPercents: [60], minTokensForGen: 0 },
      compaction: small,
    },
    talk: { turns: 20 },
    see: asked("summary"),
  },
];

describe("settings of sessions", () => {
  it.each(cases.map((one) => [`${one.area}.${one.key}`, one] as const))(
    "%s changes what a conversation does",
    async (_, { area, key, values, beside = {}, talk = {}, see }) => {
      const [one, other] = await Promise.all(
        values.map(async (value) => see(await converse(withValue(beside, area, key, value), talk))),
      );
      expect(one).toBeDefined();
      expect(one).not.toEqual(other);
    },
  );

  it("the room for an answer is what every request asks for", async () => {
    const rooms = async (maxOutputTokens: number) =>
      (await converse(quiet, { turns: 1 }, { maxOutputTokens })).requests[0]?.maxOutputTokens;
    expect([await rooms(700), await rooms(0)]).toEqual([700, null]);
  });

  it("a send policy decides, by the mode that is set where it says none", async () => {
    const rules = [
      { match: { channel: "slack" }, action: "allow" },
      { match: {}, action: "deny" },
    ];
    const action = async (sendPolicyMode: string) => {
      const settings = sessionSettings(await resolve({ file: { session: { sendPolicy: { rules }, sendPolicyMode } } }));
      const policy = settings.sendPolicy;
      return resolveSendPolicy({ key: "agent:main:slack:direct:ada", entry: null, policy, channel: "slack" }).action;
    };
    expect([await action("first-match"), await action("deny-overrides")]).toEqual(["allow", "deny"]);
  });

  it("the cache's time is that of OpenClaw's functions [C44]", async () => {
    /** How often the store is read for two loads ten milliseconds apart, between which nobody wrote. */
    const reads = async (environment: Record<string, string>) => {
      const { cacheTtlMs } = sessionSettings(await resolve({ environment }));
      let nowMs = 1000;
      let lists = 0;
      const clock = { nowMs: () => nowMs, sleep: () => Promise.resolve() };
      const memory = createMemoryStore({ clock });
      const counted: Partial<SessionStore> & Pick<SessionStore, "list"> = {
        entriesMark: () => Promise.resolve("nobody writes"),
        list: (query: ListQuery) => (lists++, memory.list(query)),
      };
      const store = new Proxy<SessionStore>(memory, {
        get(target, name) {
          const value: unknown = Reflect.get(name in counted ? counted : target, name);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
      const random = { uint32: () => 1, uuid: () => "a" };
      const functions = createOpenclawSessions({ store, stateDir: "/s", homeDir: "/h", clock, random, cacheTtlMs });
      const path = functions.resolveDefaultSessionStorePath("main");
      for (let load = 0; load < 2; load++) {
        await functions.loadSessionStore(path);
        nowMs += 10;
      }
      return lists;
    };
    expect(await reads({})).toBe(1);
    expect(await reads({ OPENCLAW_SESSION_CACHE_TTL_MS: "5" })).toBe(2);
    expect(await reads({ THROUGHLINE_SESSION_CACHE_TTL_MS: "0", OPENCLAW_SESSION_CACHE_TTL_MS: "9999" })).toBe(2);
  });

  it("a summary that is made again does not wait for the breaker of the only model", async () => {
    const compaction = {
      ...small,
      summaryModels: ["x/one"],
      fallbackToMain: false,
      retryIntervalSeconds: 60,
      retryFirstDelayMs: 60_000,
      retryMaxAttempts: 2,
      ollamaFailureThreshold: 1,
      ollamaResetMinutes: 600,
    };
    const seen = await converse({ compaction }, poor);
    expect(asked("summary")(seen).length).toBeGreaterThan(2);
    expect(Object.values(readRetries(seen.entry))).toContainEqual(
      expect.objectContaining({ nextAtMs: null, attempts: 2 }),
    );
  });

  it("are all shown at work, or are where sessions are and whose", () => {
    const shown = new Set(cases.map(({ area, key }) => `session.${area}.${key}`.replace("..", ".")));
    // The guard's and the style of a summary show in requests: the command line's tests of the preset claw0 have them.
    const elsewhere =
      /^session\.(store|storePath|defaultKey|inherit\.\w+|guard\.\w+|compaction\.(summaryStyle|summaryToolResults|summaryMessageChars|toolResultChars)|sendPolicy|sendPolicyMode|cacheTtlMs)$/;
    const keys = settingTables
      .flatMap(({ settings }) => settings.map(({ key }) => key))
      .filter((key) => key.startsWith("session."));
    expect(keys.filter((key) => !shown.has(key) && !elsewhere.test(key))).toEqual([]);
  });
});

function withValue(beside: Readonly<Record<string, object>>, area: string, key: string, value: unknown): object {
  if (area === "") return { ...beside, [key]: value };
  const [first = "", second] = area.split(".");
  const block = { ...beside[first] } as Record<string, unknown>;
  if (second === undefined) block[key] = value;
  else block[second] = { [key]: value };
  return { ...beside, [first]: block };
}
