import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandTable } from "../src/command-table.ts";
import { assistant, objects, runChild, seed, temporaryDirectory, user } from "./harness.ts";

/** A shape: the exact keys with a check of each value; written by hand from the contract, not from the code. */
type Shape = Readonly<Record<string, (value: unknown) => boolean>>;

const text = (value: unknown): boolean => typeof value === "string";
const flag = (value: unknown): boolean => typeof value === "boolean";
const count = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;
const number = (value: unknown): boolean => typeof value === "number";
const anything = (): boolean => true;
const list = (value: unknown): boolean => Array.isArray(value);
const or = (check: (value: unknown) => boolean) => (value: unknown) => value === null || check(value);
const one =
  (...words: readonly unknown[]) =>
  (value: unknown) =>
    words.includes(value);
const object = (shape: Shape) => (value: unknown) => problemOf(value, shape) === null;
const listOf = (shape: Shape) => (value: unknown) =>
  Array.isArray(value) && value.every((item) => problemOf(item, shape) === null);

function problemOf(value: unknown, shape: Shape): string | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "no object";
  const keys = Object.keys(value).toSorted().join(" ");
  const expected = Object.keys(shape).toSorted().join(" ");
  if (keys !== expected) return `keys ${keys}, not ${expected}`;
  const wrong = Object.entries(shape).find(([key, check]) => !check((value as Record<string, unknown>)[key]));
  return wrong === undefined ? null : `${wrong[0]} is ${JSON.stringify((value as Record<string, unknown>)[wrong[0]])}`;
}

const kind = { kind: text };
const lostLine: Shape = { line: count, bytes: count, reason: text };
const totals: Shape = {
  sources: count,
  imported: count,
  grown: count,
  unchanged: count,
  skipped: count,
  refused: count,
  records: count,
  repaired: count,
  lost: count,
};

const shapes: Readonly<Record<string, Shape>> = {
  end: { ...kind, count, nextCursor: or(text) },
  error: {
    ...kind,
    code: text,
    message: text,
    remedy: text,
    retryable: flag,
    outcome: or(one("not-applied", "unknown")),
    details: object({}),
  },
  session: {
    ...kind,
    agentId: text,
    key: text,
    sessionId: text,
    label: or(text),
    state: one("active", "archived"),
    archiveId: or(text),
    recordCount: count,
    messageCount: count,
    contextTokens: or(count),
    windowTokens: or(count),
    contextPercent: or(number),
    model: or(text),
    createdAtMs: count,
    updatedAtMs: count,
  },
  record: {
    ...kind,
    seq: count,
    id: text,
    parentId: or(text),
    type: text,
    side: flag,
    tsMs: or(count),
    record: anything,
  },
  ack: { ...kind, seq: count, id: text, headId: or(text), durability: one("none", "process", "disk") },
  context: {
    ...kind,
    key: text,
    sessionId: text,
    provider: text,
    model: or(text),
    headId: or(text),
    lastSeq: count,
    recordsInContext: count,
    messages: list,
    system: or(text),
    gauge: object({
      tokens: count,
      source: one("actual", "actual+delta", "tokenizer", "heuristic"),
      lowTokens: count,
      highTokens: count,
      windowTokens: or(count),
      percent: or(number),
    }),
    breakdown: object({
      systemTokens: count,
      toolsTokens: count,
      summaryTokens: count,
      messageTokens: count,
      toolResultTokens: count,
    }),
    repairs: listOf({ rule: text, recordId: text, before: or(text), after: or(text) }),
    omitted: listOf({ fromSeq: count, toSeq: count, reason: text }),
  },
  hit: {
    ...kind,
    key: text,
    sessionId: text,
    seq: count,
    id: text,
    role: or(text),
    tsMs: or(count),
    score: number,
    snippet: text,
    highlights: (value) =>
      Array.isArray(value) && value.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(count)),
  },
  import: {
    ...kind,
    sources: listOf({
      path: text,
      format: text,
      key: or(text),
      sessionId: or(text),
      state: one("imported", "grown", "unchanged", "skipped", "refused"),
      records: count,
      repaired: count,
      lost: listOf(lostLine),
    }),
    totals: object(totals),
  },
  finding: {
    ...kind,
    code: text,
    severity: one("info", "warning", "error"),
    path: or(text),
    key: or(text),
    line: or(count),
    byteOffset: or(count),
    recordId: or(text),
    message: text,
    remedy: text,
    repaired: flag,
  },
  setting: {
    ...kind,
    key: text,
    value: anything,
    source: one("default", "file", "environment", "flag"),
    default: anything,
  },
  export: {
    ...kind,
    key: or(text),
    sessionId: or(text),
    format: one("jsonl", "openclaw", "pi"),
    path: text,
    records: count,
    sizeBytes: count,
  },
  copy: {
    ...kind,
    agentId: text,
    key: text,
    sessionId: text,
    state: one("imported", "grown", "unchanged", "refused"),
    records: count,
  },
  demo: {
    ...kind,
    ok: flag,
    elapsedMs: count,
    steps: listOf({ name: text, ok: flag, summary: text, figures: anything }),
  },
  note: { ...kind, message: text },
  removed: { ...kind, agentId: text, key: text, sessionId: text },
  redaction: { ...kind, key: text, sessionId: text, ids: list, seqs: list, reason: text },
  entry: { ...kind, key: text, sessionId: text, revision: count, entry: anything },
  backup: { ...kind, path: text, sizeBytes: count },
  restored: { ...kind, path: text, backup: text, sessions: count },
  stats: {
    ...kind,
    store: text,
    storeName: text,
    defaultDurability: one("none", "process", "disk"),
    agents: count,
    sessions: count,
    archivedSessions: count,
    records: count,
    messages: count,
    firstAtMs: or(count),
    lastAtMs: or(count),
    sizeBytes: or(count),
    searchLag: or(count),
  },
  diagnosis: {
    ...kind,
    overflow: flag,
    overflowKind: or(one("input", "io", "bytes", "item", "ceiling")),
    category: text,
    inputTokens: or(count),
    limitTokens: or(count),
    maxOutputTokens: or(count),
    retryAfterMs: or(count),
    rule: text,
    action: text,
  },
  completion: { ...kind, shell: one("bash", "zsh", "fish"), script: text },
};

/** Every line of both streams is an object of a known shape; gives their kinds. */
function kinds(output: string): string[] {
  return objects(output).map((value) => {
    const shape = shapes[String(value["kind"])];
    // Details of an error are whatever the error is about.
    const checked = value["kind"] === "error" ? { ...value, details: {} } : value;
    expect(
      shape === undefined ? "an unknown kind" : problemOf(checked, shape),
      JSON.stringify(value).slice(0, 300),
    ).toBeNull();
    return String(value["kind"]);
  });
}

const directory = temporaryDirectory();
const home = directory.path;
const brokenFile = join(home, "broken.jsonl");
const header = '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/ada"}';

beforeAll(async () => {
  await seed(home, [
    {
      key: "notes",
      entry: {
        label: "Harbour",
        contextTokens: 1000,
        totalTokens: 250,
        totalTokensFresh: true,
        model: "model-1",
        modelProvider: "example",
      },
      drafts: [
        user("the harbour lights"),
        {
          type: "message",
          message: {
            role: "assistant",
            content: [{ type: "toolCall", id: "c1", name: "read", arguments: {} }],
            stopReason: "toolUse",
          },
        },
        user("go on"),
        assistant("they are lit", { input: 200, output: 30, cacheRead: 10, cacheWrite: 10 }),
        { type: "label", targetId: "x", label: "mark" },
      ],
    },
    { key: "agent:main:cli:direct:other", drafts: [user("nothing")] },
  ]);
  mkdirSync(join(home, "transcripts"));
  const message =
    '{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hi"}}';
  writeFileSync(join(home, "transcripts/s1.jsonl"), `${header}\n${message}\n`);
  writeFileSync(brokenFile, `${header}\n{oops\n${message}\n`);
});
afterAll(() => directory.remove());

interface Case {
  readonly command: string;
  readonly args: readonly string[];
  readonly stdin?: string;
  readonly code?: number;
  /** Kinds on stdout: a list in order, or each of them at least once with the last one last. */
  readonly stdout: readonly string[];
  readonly stderr?: readonly string[];
}

const cases: readonly Case[] = [
  { command: "sessions", args: [], stdout: ["session", "session", "end"] },
  { command: "sessions", args: ["--limit", "1", "--sort", "key"], stdout: ["session", "end"] },
  { command: "show", args: ["notes"], stdout: ["record", "record", "record", "record", "end"] },
  { command: "show", args: ["notes", "--all-branches", "--after-seq", "3"], stdout: ["record", "record", "end"] },
  { command: "context", args: ["notes"], stdout: ["context"] },
  { command: "context", args: ["notes", "--provider", "anthropic", "--window", "500"], stdout: ["context"] },
  { command: "context", args: ["notes", "--provider", "text"], stdout: ["context"] },
  {
    command: "append",
    args: ["new", "--batch", "2"],
    stdin: '{"type":"note"}\n{"type":"label","targetId":"x"}\n',
    stdout: ["ack", "ack"],
  },
  { command: "append", args: ["new"], stdin: '{"type":"note"}\n{oops\n', code: 1, stdout: ["ack"], stderr: ["error"] },
  { command: "import", args: ["transcripts"], stdout: ["import"] },
  { command: "import", args: ["broken.jsonl", "--dry-run"], code: 3, stdout: ["import"], stderr: ["finding"] },
  { command: "export", args: ["notes", "-o", "notes.jsonl"], stdout: ["export", "end"] },
  { command: "export", args: ["notes", "-o", "notes.jsonl"], code: 1, stdout: [], stderr: ["error"] },
  { command: "copy", args: ["--all", "--to-store", "jsonl:other"], stdout: ["copy", "end"] },
  { command: "search", args: ["harbour", "lights"], stdout: ["hit", "end"], stderr: ["note"] },
  { command: "doctor", args: [], stdout: ["finding", "end"] },
  { command: "doctor", args: ["broken.jsonl", "--repair"], code: 3, stdout: ["finding", "end"], stderr: ["note"] },
  { command: "config", args: [], stdout: ["setting", "end"] },
  { command: "demo", args: [], stdout: ["demo"] },
  { command: "new", args: ["Harbour", "plans"], stdout: ["session"] },
  { command: "rename", args: ["agent:main:cli:direct:harbour-plans", "plans", "--label", "P"], stdout: ["session"] },
  { command: "fork", args: ["plans"], stdout: ["session"], stderr: ["note"] },
  { command: "rewind", args: ["new", "--to", "start"], stdout: ["session"], stderr: ["note"] },
  { command: "redact", args: ["new", "1", "--yes"], stdout: ["redaction"] },
  { command: "reset", args: ["plans"], stdout: ["session"], stderr: ["note"] },
  { command: "entry", args: ["notes"], stdout: ["entry"] },
  { command: "entry", args: ["plans", "set", "sendPolicy", "deny"], stdout: ["entry"], stderr: ["note"] },
  { command: "delete", args: ["plans"], stdout: ["session"], stderr: ["note"] },
  { command: "delete", args: ["plans-fork", "--purge", "--yes"], stdout: ["removed"] },
  { command: "delete", args: ["notes", "--purge"], code: 2, stdout: [], stderr: ["error"] },
  { command: "restore", args: ["--archive", "nothing"], code: 1, stdout: [], stderr: ["error"] },
  { command: "watch", args: ["notes", "--after-seq", "0", "--limit", "2"], stdout: ["record", "end"] },
  { command: "verify", args: [], stdout: ["finding", "end"], stderr: ["note"] },
  { command: "stats", args: [], stdout: ["stats"] },
  { command: "diagnose", args: [], stdin: "prompt is too long: 210000 tokens > 200000 maximum", stdout: ["diagnosis"] },
  { command: "completion", args: ["zsh"], stdout: ["completion"] },
];

describe("--json", () => {
  it.each(cases)(
    "prints for $command $args the shapes of the contract",
    async ({ command, args, stdin, code = 0, stdout, stderr = [] }) => {
      const run = await runChild(home, [command, ...args, "--json"], stdin === undefined ? {} : { stdin });
      const printed = kinds(run.stdout);
      expect(run).toMatchObject({ code });
      expect(new Set(printed)).toEqual(new Set(stdout));
      expect(printed.at(-1)).toBe(stdout.at(-1));
      expect(new Set(kinds(run.stderr))).toEqual(new Set(stderr));
      const end = objects(run.stdout).find((value) => value["kind"] === "end");
      if (end !== undefined) expect(end["count"]).toBe(printed.length - 1);
    },
  );

  it("is checked for every command there is", () => {
    expect(new Set(cases.map(({ command }) => command))).toEqual(
      new Set(commandTable.filter(({ isHidden }) => isHidden !== true).map(({ name }) => name)),
    );
  });

  it("gives the values of a session, a context and a hit", async () => {
    const one = async (...args: readonly string[]): Promise<Record<string, unknown>> =>
      objects((await runChild(home, [...args, "--json", "--quiet"])).stdout)[0] ?? {};
    expect(await one("sessions", "--sort", "key", "--limit", "2", "--since", "2000-01-01")).toMatchObject({
      agentId: "main",
      state: "active",
      archiveId: null,
    });
    const context = await one("context", "notes", "--window", "500");
    expect(context).toMatchObject({
      recordsInContext: 4,
      model: "example/model-1",
      gauge: { tokens: 250, source: "actual", lowTokens: 250, highTokens: 250, windowTokens: 500, percent: 50 },
    });
    const hit = await one("search", "HARBOUR   lights");
    expect(hit).toMatchObject({
      key: "notes",
      seq: 1,
      role: "user",
      snippet: "the harbour lights",
      highlights: [[4, 18]],
    });
  });
});
