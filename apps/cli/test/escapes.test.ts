import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandTable } from "../src/command-table.ts";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

/** Everything a terminal would act on, but line feed and tab. */
const active = /[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

const attacks: readonly string[] = [
  "\u001b]52;c;cm0gLXJm\u0007",
  "\u001b]0;title\u001b\\",
  "\u001b]8;;https://example.org\u0007link\u001b]8;;\u0007",
  "\u001bP1$r\u001b\\",
  "\u001b_apc\u001b\\",
  "\u001b[6n",
  "\u001b[2J\u001b[31m",
  "\u001bc",
  "\u009b31m",
  "\u009d0;x\u009c",
  "\u202ereversed\u2069",
  "shown\rhidden\u0008\u0007\u007f",
  "\u001b]0;without an end",
];
const attack = attacks.join(" mark ");

const directory = temporaryDirectory();
const home = directory.path;
const evilKey = "agent:main:evil";
// A key may hold none of it; labels and file names nearly everything.
const evilFolder = "tran\u001b[31mscripts\u009b0m";

beforeAll(async () => {
  await seed(home, [
    {
      key: evilKey,
      entry: { sessionId: "evil", label: attack, model: attack, modelProvider: "p", contextTokens: 1000 },
      drafts: [
        user(`needle ${attack}`),
        {
          ...assistant(attack),
          message: {
            role: "assistant",
            content: [{ type: "toolCall", id: attack, name: attack, arguments: { [attack]: attack } }],
            provider: attack,
            model: attack,
            stopReason: attack,
          },
        },
        {
          type: "message",
          message: {
            role: "toolResult",
            toolCallId: "other",
            toolName: attack,
            content: [{ type: "text", text: attack }],
            isError: false,
          },
        },
        { type: "message", message: { role: attack, content: attack } },
        { type: "custom_message", customType: attack, content: attack },
        { type: "mystery", data: attack, content: attack },
        { type: "message", message: { role: "bashExecution", command: attack, output: attack } },
      ],
    },
  ]);
  mkdirSync(join(home, evilFolder));
  const lines = [
    { type: "session", version: 3, id: "s1", timestamp: "2026-01-01T00:00:00.000Z", cwd: attack },
    { type: "message", id: "a", parentId: attack, timestamp: attack, message: { role: "user", content: attack } },
    { type: attack, id: "b", parentId: "a", timestamp: "2026-01-01T00:00:00.000Z" },
  ];
  writeFileSync(
    join(home, evilFolder, "s1.jsonl"),
    `${lines.map((line) => JSON.stringify(line)).join("\n")}\n{"raw ${attack}\n`,
  );
});
afterAll(() => directory.remove());

const runs: Readonly<Record<string, readonly (readonly string[])[]>> = {
  sessions: [["sessions"]],
  show: [
    ["show", "evil", "--all-branches"],
    ["show", "evil", "--raw"],
    ["show", `nobody ${attack}`],
    ["show", "agent:main:evil"],
  ],
  context: [
    ["context", "evil"],
    ["context", "evil", "--provider", "anthropic"],
    ["context", "evil", "--provider", "text"],
  ],
  append: [["append", `key ${attack}`]],
  import: [
    ["import", evilFolder, "--dry-run"],
    ["import", `missing ${attack}`],
  ],
  export: [
    ["export", "evil", "-o", `missing\u001b[31m/out.jsonl`],
    ["export", "evil", "--to", "pi"],
  ],
  copy: [
    ["copy", "evil", "--to-store", `jsonl:copy\u001b]0;x\u0007`],
    ["copy", "evil", "--to-store", `x\u001b]0;x\u0007`],
  ],
  relocate: [["relocate", "--to-store", `postgres://h/d?schema=x\u001b[31m`, "--yes"]],
  search: [
    ["search", "needle"],
    ["search", "mark"],
    ["search", "--role", "user"],
    ["search", "--file", attack],
  ],
  open: [["open", "1"]],
  doctor: [["doctor"], ["doctor", evilFolder]],
  config: [
    ["config", "--store", `jsonl:${attack}`],
    ["config", "--agent", attack],
  ],
  demo: [[`demo${attack}`]],
  chat: [
    ["chat", "--once", attack, "--key", evilKey, "--model", "offline"],
    ["chat", "--key", attack, "--once", "x"],
    ["chat", "--model", attack, "--once", "x"],
  ],
  explain: [["explain", "evil"]],
  sync: [
    ["sync", evilFolder, "--dry-run"],
    ["sync", "--programs", attack],
  ],
  handoff: [
    ["handoff", `x${attack}`, "--to", "codex"],
    ["handoff", "evil", "--to", attack],
  ],
  secrets: [["secrets"], ["secrets", `x${attack}`], ["secrets", evilKey, "--redact"]],
  resume: [
    ["resume", "evil"],
    ["resume", `x${attack}`],
  ],
  compact: [
    ["compact", evilKey, "--dry-run"],
    ["compact", evilKey, "--model", attack],
    ["compact", `x${attack}`],
  ],
  checkpoint: [
    ["checkpoint", evilKey, "--model", "offline"],
    ["checkpoint", `x${attack}`],
  ],
  checkpoints: [
    ["checkpoints", evilKey],
    ["checkpoints", `x${attack}`],
  ],
  memory: [
    ["memory", "search", "mark"],
    ["memory", "search", attack],
    ["memory", attack],
  ],
  approvals: [
    ["approvals", evilKey],
    ["approvals", evilKey, "--approve", attack],
    ["approvals", evilKey, "--refuse", attack, attack],
    ["approvals", `x${attack}`],
  ],
  policy: [
    ["policy", evilKey],
    ["policy", evilKey, "--channel", attack],
    ["policy", `x${attack}`],
  ],
  prune: [
    ["prune", "--keep", "0"],
    ["prune", "--older-than", attack],
  ],
  new: [
    ["new", attack],
    ["new", "--key", attack],
  ],
  rename: [
    ["rename", evilKey, "--label", attack],
    ["rename", `x${attack}`, attack],
  ],
  reset: [["reset", `x${attack}`]],
  fork: [
    ["fork", evilKey, "--label", attack],
    ["fork", evilKey, "--at", attack],
  ],
  rewind: [["rewind", evilKey, "--to", attack]],
  delete: [
    ["delete", `x${attack}`],
    ["delete", evilKey, "--purge"],
  ],
  restore: [["restore", "--archive", attack]],
  redact: [
    ["redact", evilKey, attack, "--yes"],
    ["redact", evilKey, "1"],
  ],
  entry: [
    ["entry", evilKey],
    ["entry", evilKey, "get", "label"],
    ["entry", evilKey, attack],
  ],
  watch: [["watch", "evil", "--after-seq", "0", "--limit", "7"]],
  verify: [["verify"], ["verify", "--store", `sqlite:${attack}`]],
  stats: [["stats"]],
  usage: [
    ["usage", "--by", "session,model"],
    ["usage", "--by", attack],
    ["usage", "--folder", attack],
    ["usage", "--program", attack],
    ["usage", "--since", attack],
    ["usage", "--statusline"],
  ],
  serve: [
    ["serve", "--host", attack, "--port", "0"],
    ["serve", "--public-url", attack, "--port", "0"],
    ["serve", "--token-file", `x${attack}`, "--port", "0"],
  ],
  mcp: [
    ["mcp"],
    ["mcp", "--http", attack],
    ["mcp", "--store", `sqlite:${attack}`],
    ["mcp", "--key-prefixes", attack, "--workspace", attack],
  ],
  token: [
    ["token", attack],
    ["token", "create", attack, "--scopes", "read"],
    ["token", "list"],
    ["token", "revoke", attack],
  ],
  // Without a session it would serve until it is stopped.
  ui: [["ui", `missing${attack}`, "--no-open", "--no-sync"]],
  reindex: [["reindex"], ["reindex", "--store", "memory:"]],
  encryption: [
    ["encryption", attack],
    ["encryption", "check", attack],
    ["encryption", "shred", "--agent", attack, "--reason", attack],
    ["encryption", "--keyring", attack, "--main-key", `file:${attack}`],
  ],
  backup: [
    ["backup", `missing${attack}/x.db`],
    ["backup", "sessions.db"],
  ],
  "restore-backup": [["restore-backup", attack, "--store", `sqlite:copy${attack}`]],
  diagnose: [["diagnose"]],
  completion: [
    ["completion", attack],
    ["completion", "bash"],
  ],
  __complete: [["__complete", "--", "show", ""]],
};

describe("what stands in transcripts, keys and file names", () => {
  const all = Object.entries(runs).flatMap(([command, given]) =>
    given.map((args, index) => ({ command, index, args })),
  );

  it.each(all)("does nothing to a terminal: $command $index", async ({ args }) => {
    for (const isTerminal of [true, false]) {
      const options = { isTerminal, environment: { NO_COLOR: "1" }, stdin: args[0] === "diagnose" ? attack : "" };
      const { stdout, stderr } = await runHere(home, args, options);
      // A refused export to a terminal says so on stderr; in a pipe the bytes are nobody's business but the file's.
      if (!(args[0] === "export" && !isTerminal)) expect(active.exec(stdout)?.[0]).toBeUndefined();
      expect(active.exec(stderr.replaceAll("\r\u001b[K", ""))?.[0]).toBeUndefined();
    }
    const asJson = await runHere(home, [...args, "--json"], { isTerminal: true });
    expect(active.exec(asJson.stdout + asJson.stderr)?.[0]).toBeUndefined();
  });

  it("is tried with every command there is", () => {
    const visible = commandTable.filter(({ isHidden }) => isHidden !== true).map(({ name }) => name);
    expect(new Set(Object.keys(runs))).toEqual(new Set([...visible, "__complete"]));
  });

  it("is still all there in JSON", async () => {
    const { stdout } = await runHere(home, ["show", "evil", "--json"]);
    expect(objects(stdout)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          record: expect.objectContaining({ message: expect.objectContaining({ command: attack, output: attack }) }),
        }),
      ]),
    );
  });
});

describe("colour", () => {
  it("is for terminals only, and not with NO_COLOR", async () => {
    const args = ["show", "evil", "--tail", "1"];
    const escape = "\u001b[36m";
    expect((await runHere(home, args, { isTerminal: true })).stdout).toContain(escape);
    expect((await runHere(home, args, { isTerminal: true, environment: { NO_COLOR: "1" } })).stdout).not.toContain(
      "\u001b",
    );
    expect((await runHere(home, args)).stdout).not.toContain("\u001b");
    expect((await runHere(home, [...args, "--json"], { isTerminal: true })).stdout).not.toContain("\u001b");
  });

  it("keeps tables within the width of the terminal", async () => {
    const { stdout } = await runHere(home, ["sessions"], { isTerminal: true, environment: { NO_COLOR: "1" } });
    expect(stdout).toMatch(/^NAME/);
    expect(stdout.split("\n").every((line) => Array.from(line).length <= 80)).toBe(true);
  });
});
