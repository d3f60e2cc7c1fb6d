import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandTable } from "../src/command-table.ts";
import { kinds } from "./json-shapes.ts";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

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
    {
      key: "long",
      drafts: Array.from({ length: 30 }, (_, index) => [
        user(`Look after quay ${index}, and keep its lights on. `.repeat(8)),
        assistant(`Quay ${index} is looked after. `.repeat(12)),
      ]).flat(),
    },
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
  { command: "sessions", args: [], stdout: ["session", "end"] },
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
  { command: "sync", args: ["transcripts", "--dry-run"], stdout: ["sync"] },
  { command: "export", args: ["notes", "-o", "notes.jsonl"], stdout: ["export", "end"] },
  { command: "handoff", args: ["notes", "--to", "pi"], stdout: ["handoff"] },
  { command: "resume", args: ["notes"], stdout: ["resume"] },
  { command: "secrets", args: ["notes"], stdout: ["end"] },
  { command: "export", args: ["notes", "-o", "notes.jsonl"], code: 1, stdout: [], stderr: ["error"] },
  { command: "copy", args: ["--all", "--to-store", "jsonl:other"], stdout: ["copy", "end"] },
  // What a run prints needs PostgreSQL: `relocate.test.ts` holds it to its shape.
  { command: "relocate", args: ["--to-store", "jsonl:other", "--yes"], code: 1, stdout: [], stderr: ["error"] },
  { command: "search", args: ["harbour", "lights"], stdout: ["hit", "end"] },
  { command: "search", args: ["harbour", "--group"], stdout: ["hitGroup", "end"] },
  { command: "search", args: ["--role", "user"], stdout: ["hit", "end"] },
  { command: "search", args: ["--group"], code: 2, stdout: [], stderr: ["error"] },
  { command: "open", args: ["1"], code: 2, stdout: [], stderr: ["error"] },
  { command: "show", args: ["notes", "--files"], stdout: ["end"] },
  { command: "search", args: ["harbour", "--scan"], stdout: ["hit", "end"], stderr: ["note"] },
  { command: "doctor", args: [], stdout: ["finding", "end"] },
  { command: "doctor", args: ["broken.jsonl", "--repair"], code: 3, stdout: ["finding", "end"], stderr: ["note"] },
  { command: "config", args: [], stdout: ["setting", "end"] },
  {
    command: "chat",
    args: ["--model", "offline", "--key", "talk", "--once", "list files"],
    stdout: ["turn"],
    stderr: ["note"],
  },
  {
    command: "chat",
    args: ["--model", "offline", "--key", "talk"],
    stdin: "hello",
    stdout: ["turn"],
    stderr: ["note"],
  },
  { command: "chat", args: [], code: 2, stdout: [], stderr: ["error"] },
  { command: "explain", args: ["talk"], stdout: ["call", "end"] },
  { command: "explain", args: ["notes"], stdout: ["end"] },
  { command: "compact", args: ["notes", "--dry-run", "--model", "offline"], stdout: ["compaction"], stderr: ["note"] },
  { command: "compact", args: ["long", "--model", "offline"], stdout: ["compaction"], stderr: ["note", "event"] },
  { command: "compact", args: ["nobody"], code: 1, stdout: [], stderr: ["error"] },
  {
    command: "checkpoint",
    args: ["long", "--dry-run", "--model", "offline"],
    stdout: ["checkpoint"],
    stderr: ["note"],
  },
  { command: "checkpoint", args: ["long", "--model", "offline"], stdout: ["checkpoint"], stderr: ["note", "event"] },
  { command: "checkpoints", args: ["long"], stdout: ["checkpoint", "end"] },
  { command: "checkpoints", args: ["notes"], stdout: ["end"] },
  { command: "memory", args: ["search", "harbour"], stdout: ["memory", "memory-search", "end"], stderr: ["note"] },
  { command: "approvals", args: ["notes"], stdout: ["end"] },
  { command: "approvals", args: ["notes", "--approve", "c1"], code: 1, stdout: [], stderr: ["error"] },
  { command: "policy", args: ["notes"], stdout: ["policy"] },
  { command: "prune", args: ["--keep", "1", "--max-bytes", "100"], stdout: ["prune"] },
  { command: "prune", args: [], code: 2, stdout: [], stderr: ["error"] },
  { command: "new", args: ["Harbour", "plans"], stdout: ["session"] },
  { command: "rename", args: ["agent:main:cli:direct:harbour-plans", "plans", "--label", "P"], stdout: ["session"] },
  { command: "fork", args: ["plans"], stdout: ["session"] },
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
  { command: "verify", args: ["--full"], stdout: ["end"] },
  { command: "reindex", args: [], stdout: ["reindex"] },
  {
    command: "encryption",
    args: ["init", "--keyring", "k.db", "--main-key", "file:k.key"],
    stdout: ["keyring"],
    stderr: ["note"],
  },
  { command: "encryption", args: ["--keyring", "k.db", "--main-key", "file:k.key"], stdout: ["encryption"] },
  {
    command: "encryption",
    args: ["check", "k.key", "--keyring", "k.db", "--main-key", "file:k.key"],
    code: 3,
    stdout: ["proof"],
  },
  {
    command: "encryption",
    args: [
      "shred",
      "--agent",
      "none",
      "--store",
      "sqlite:coded.db",
      "--keyring",
      "k.db",
      "--main-key",
      "file:k.key",
      "--yes",
    ],
    stdout: ["agentErasure"],
    stderr: ["note"],
  },
  { command: "backup", args: ["backup.db"], stdout: ["backup"] },
  { command: "backup", args: ["backup.db"], code: 1, stdout: [], stderr: ["error"] },
  { command: "restore-backup", args: ["backup.db", "--store", "sqlite:again.db"], stdout: ["restored"] },
  {
    command: "restore-backup",
    args: ["backup.db", "--store", "sqlite:again.db"],
    code: 2,
    stdout: [],
    stderr: ["error"],
  },
  { command: "stats", args: [], stdout: ["stats"] },
  { command: "stats", args: ["--activity"], stdout: ["activity"] },
  { command: "usage", args: ["--by", "session,model"], stdout: ["usage", "usageTotal", "end"] },
  { command: "usage", args: ["--blocks"], stdout: ["usageBlock", "end"] },
  { command: "usage", args: ["--statusline"], stdin: '{"model":{"id":"m"}}', stdout: ["usageStatus"] },
  { command: "usage", args: ["--blocks", "--statusline"], code: 2, stdout: [], stderr: ["error"] },
  { command: "serve", args: ["--port", "0", "--quiet", "--timeout", "500"], stdout: ["server"] },
  { command: "ui", args: ["no such session"], code: 1, stdout: [], stderr: ["error"] },
  { command: "serve", args: ["--host", "0.0.0.0", "--port", "0"], code: 2, stdout: [], stderr: ["error"] },
  { command: "mcp", args: ["--http", "0"], code: 2, stdout: [], stderr: ["error"] },
  { command: "token", args: ["create", "laptop"], stdout: ["token"] },
  { command: "mcp", args: ["--http", "0", "--quiet", "--timeout", "500"], stdout: ["mcp"] },
  { command: "token", args: ["list", "--all"], stdout: ["token", "end"] },
  { command: "token", args: ["revoke", "nothing"], code: 1, stdout: [], stderr: ["error"] },
  { command: "diagnose", args: [], stdin: "prompt is too long: 210000 tokens > 200000 maximum", stdout: ["diagnosis"] },
  { command: "completion", args: ["zsh"], stdout: ["completion"] },
];

describe("--json", () => {
  it.each(cases)(
    "prints for $command $args the shapes of the contract",
    async ({ command, args, stdin, code = 0, stdout, stderr = [] }) => {
      const run = await runHere(home, [command, ...args, "--json"], stdin === undefined ? {} : { stdin });
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
    // What demo prints is checked by its own test, where it runs anyway.
    expect(new Set([...cases.map(({ command }) => command), "demo"])).toEqual(
      new Set(commandTable.filter(({ isHidden }) => isHidden !== true).map(({ name }) => name)),
    );
  });

  it("gives the values of a session, a context and a hit", async () => {
    const one = async (...args: readonly string[]): Promise<Record<string, unknown>> =>
      objects((await runHere(home, [...args, "--json", "--quiet"])).stdout)[0] ?? {};
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
      highlights: [
        [4, 11],
        [12, 18],
      ],
    });
  });
});
