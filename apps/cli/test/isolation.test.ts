import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { commandTable } from "../src/command-table.ts";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";

const mine = "agent:main:cli:direct:notes";
const theirs = "agent:work:cli:direct:plans";
const theirId = "id-agent-work-cli-direct-plans";
const archivedId = "id-agent-work-cli-direct-old";
const secret = "zanzibar";

let directory = temporaryDirectory();
beforeEach(async () => {
  directory = temporaryDirectory();
  await seed(directory.path, [
    { key: mine, drafts: [user("harbour"), assistant("lights")] },
    {
      key: theirs,
      entry: { label: "Zanzibar plans", sendPolicy: "deny" },
      drafts: [user(`${secret} one`), assistant(`${secret} two`), user(`${secret} three`)],
    },
    { key: "agent:work:cli:direct:old", drafts: [user(`${secret} old`)] },
  ]);
  await runHere(directory.path, ["delete", "agent:work:cli:direct:old"]);
  await runHere(directory.path, ["search", secret, "--agent", "work"]);
  await runHere(directory.path, ["checkpoint", theirs, "--model", "offline"]);
  await seed(directory.path, [{ key: "agent:main:import:direct:x", drafts: [user("x")] }], `jsonl:${directory.path}/j`);
  writeFileSync(join(directory.path, "one.jsonl"), "");
});
afterEach(() => directory.remove());

interface Attempt {
  readonly args: readonly string[];
  readonly stdin?: string;
  /** `refused`: ends with an error of that code. `blind`: does its work and shows nothing of the other agent. */
  readonly expected: "refused" | "blind";
}

const refusals = ["SESSION_NOT_FOUND", "KEY_AGENT_MISMATCH"];
const draft = '{"type":"note"}\n';

/** An MCP client that names the other agent's session in every way there is. */
function mcpRequests(): string {
  const calls = [
    ["search_sessions", { query: "zan*" }],
    ["search_sessions", { query: "one", key: theirs }],
    ["read_session", { key: theirs }],
    ["read_session", { key: theirId, agent: "work" }],
    ["list_sessions", { prefix: "agent:w" }],
    ["read_memory", {}],
  ] as const;
  const requests = calls.map(([name, args]) => ({ method: "tools/call", params: { name, arguments: args } }));
  return [{ method: "resources/list" }, ...requests]
    .map((request, id) => `${JSON.stringify({ jsonrpc: "2.0", id, ...request })}\n`)
    .join("");
}

/**
 * Every command, run for agent `main` with the name of agent `work`'s session. A command without a row fails the test
 * below: whoever adds one says what it shows of other agents.
 */
const attempts: Readonly<Record<string, readonly Attempt[] | "takes no session">> = {
  chat: [
    { args: ["--key", theirs, "--once", "hello", "--model", "offline"], expected: "refused" },
    { args: ["--once", "what did I say before", "--model", "offline"], expected: "blind" },
  ],
  demo: "takes no session",
  sessions: [{ args: ["--archived"], expected: "blind" }],
  show: [
    { args: [theirs], expected: "refused" },
    { args: [theirId], expected: "refused" },
    { args: [archivedId], expected: "refused" },
    { args: ["zanz"], expected: "refused" },
    { args: [theirs, "--files"], expected: "refused" },
  ],
  context: [
    { args: [theirs], expected: "refused" },
    { args: [theirId], expected: "refused" },
  ],
  explain: [{ args: [theirs], expected: "refused" }],
  search: [
    { args: [secret], expected: "blind" },
    { args: [secret, "--scan", "--archived"], expected: "blind" },
    { args: [secret, "--session", theirs], expected: "refused" },
    { args: ["--role", "user"], expected: "blind" },
    { args: [secret, "--group"], expected: "blind" },
  ],
  open: [{ args: ["1"], expected: "refused" }],
  watch: [{ args: [theirs, "--after-seq", "0", "--limit", "1"], expected: "refused" }],
  append: [{ args: [theirs], stdin: draft, expected: "refused" }],
  import: [{ args: ["j", "--key", theirs], expected: "refused" }],
  sync: [{ args: ["--dry-run"], expected: "blind" }],
  export: [
    { args: [theirs], expected: "refused" },
    { args: ["--all", "--archived", "-o", "exported"], expected: "blind" },
  ],
  handoff: [{ args: [theirs, "--to", "pi"], expected: "refused" }],
  secrets: [
    { args: [theirs], expected: "refused" },
    { args: [], expected: "blind" },
  ],
  resume: [{ args: [theirs], expected: "refused" }],
  copy: [
    { args: [theirs, "--to-store", "jsonl:copied"], expected: "refused" },
    { args: ["--all", "--to-store", "jsonl:copied"], expected: "blind" },
  ],
  // Of the whole store, as a backup is: whoever runs it owns the database.
  relocate: "takes no session",
  compact: [
    { args: [theirs, "--model", "offline"], expected: "refused" },
    { args: [theirId, "--dry-run", "--model", "offline"], expected: "refused" },
  ],
  checkpoint: [{ args: [theirs, "--model", "offline"], expected: "refused" }],
  checkpoints: [{ args: [theirs], expected: "refused" }],
  memory: [
    { args: ["search", secret], expected: "blind" },
    { args: ["search", secret, "--session", theirs], expected: "refused" },
  ],
  new: [{ args: ["--key", theirs], expected: "refused" }],
  rename: [
    { args: [theirs, "--label", "x"], expected: "refused" },
    { args: [mine, "agent:work:cli:direct:mine"], expected: "refused" },
  ],
  reset: [{ args: [theirs], expected: "refused" }],
  fork: [
    { args: [theirs], expected: "refused" },
    { args: [mine, "--key", "agent:work:cli:direct:forked"], expected: "refused" },
  ],
  rewind: [{ args: [theirs, "--to", "1"], expected: "refused" }],
  delete: [
    { args: [theirs, "--purge", "--yes"], expected: "refused" },
    { args: [theirId], expected: "refused" },
    { args: [archivedId, "--purge", "--yes"], expected: "refused" },
  ],
  restore: [{ args: ["--archive", archivedId], expected: "refused" }],
  redact: [{ args: [theirs, "1", "--yes"], expected: "refused" }],
  entry: [
    { args: [theirs], expected: "refused" },
    { args: [theirs, "set", "sendPolicy", "allow"], expected: "refused" },
  ],
  approvals: [
    { args: [theirs], expected: "refused" },
    { args: [theirs, "--approve", "call"], expected: "refused" },
  ],
  policy: [{ args: [theirs], expected: "refused" }],
  prune: [{ args: ["--keep", "0", "--max-bytes", "1", "--grace", "0s", "--yes"], expected: "blind" }],
  doctor: [{ args: [], expected: "blind" }],
  verify: "takes no session",
  reindex: "takes no session",
  backup: "takes no session",
  encryption: "takes no session",
  "restore-backup": "takes no session",
  stats: [
    { args: [], expected: "blind" },
    { args: ["--activity"], expected: "blind" },
  ],
  usage: [
    { args: ["--by", "session"], expected: "blind" },
    { args: ["--by", "folder,agent", "--json"], expected: "blind" },
  ],
  // It would serve until it is stopped: what a token of one agent reaches is tried in apps/server.
  serve: "takes no session",
  ui: [{ args: [theirs, "--no-open", "--no-sync"], expected: "refused" }],
  mcp: [{ args: [], stdin: mcpRequests(), expected: "blind" }],
  token: "takes no session",
  diagnose: "takes no session",
  config: "takes no session",
  completion: "takes no session",
  "__demo-talk": "takes no session",
  __complete: [{ args: ["--", "show", "ag"], expected: "blind" }],
};

async function everythingTheirs(): Promise<string> {
  const texts = await Promise.all(
    [
      ["show", theirs, "--all-branches", "--raw"],
      ["entry", theirs, "--json"],
      ["sessions", "--agent", "work", "--archived", "--json"],
    ].map(async (args) => (await runHere(directory.path, args)).stdout),
  );
  return texts.join("\n");
}

const rows = Object.entries(attempts).flatMap(([command, tries]) =>
  tries === "takes no session" ? [] : tries.map((attempt) => ({ command, ...attempt })),
);

describe("a command for one agent", () => {
  it("has a row in the table, whichever it is", () => {
    expect(Object.keys(attempts).toSorted()).toEqual(commandTable.map(({ name }) => name).toSorted());
  });

  it.each(rows)("$command $args does not reach another agent's session", async (row) => {
    const { command, args, stdin, expected } = row;
    const before = await everythingTheirs();
    expect(before).toContain(secret);
    const options = stdin === undefined ? {} : { stdin };
    const scoped = command === "__complete" ? ["--agent", "main", command] : [command, "--agent", "main"];
    const run: Run = await runHere(
      directory.path,
      [...scoped, ...args, ...(command === "__complete" ? [] : ["--json"])],
      options,
    );
    expect(await everythingTheirs()).toBe(before);
    if (expected === "refused") {
      const error = objects(run.stderr).findLast(({ kind }) => kind === "error");
      expect([run.code === 0, refusals]).toEqual([false, expect.arrayContaining([error?.["code"]])]);
      expect(run.stdout).not.toContain(secret);
    } else {
      expect([run.code, run.stderr]).toEqual([expect.toBeOneOf([0, 3]), expect.not.stringContaining(secret)]);
      for (const word of [secret, "agent:work", theirId, archivedId])
        expect(run.stdout.toLowerCase()).not.toContain(word);
    }
    for (const folder of ["exported", "copied"]) {
      if (!existsSync(join(directory.path, folder))) continue;
      const url = `jsonl:${join(directory.path, folder)}`;
      const listed = await runHere(directory.path, [
        "sessions",
        "--all-agents",
        "--archived",
        "--json",
        "--store",
        url,
      ]);
      expect(listed.stdout).not.toContain("agent:work");
    }
  });
});
