import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, runChild, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import { runInTerminal, say } from "./terminal.ts";

const key = "agent:main:cli:direct:work";
const model = "anthropic/claude-opus-5";
const helper = "anthropic/claude-haiku-4-5";
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const noKeys = { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", OLLAMA_HOST: "" };

/** Another model is asked for summaries before the one that answers. */
function nameHelper(): void {
  const config = { session: { compaction: { summaryModels: [helper] } } };
  writeFileSync(join(directory.path, "config.json"), JSON.stringify(config));
}

function exchanges(count: number): ReturnType<typeof user>[] {
  return Array.from({ length: count }, (_, index) => [
    user(`Look after quay ${index}, and never paint it red. `.repeat(10)),
    assistant(`Quay ${index} is looked after in src/quay-${index}.ts. `.repeat(12)),
  ]).flat();
}

async function only(...args: readonly string[]): Promise<Record<string, unknown>> {
  const run = await runHere(directory.path, [...args, "--json", "--quiet"], { environment: noKeys });
  expect(run.stderr).toBe("");
  return objects(run.stdout)[0] ?? {};
}

const summary = `Topics:
- quays
Key decisions:
- no red paint
Current state:
- quays are looked after
Open items:
- none`;

describe("a summary after which memories are found", () => {
  it("names the memory files written since the one before, and the tool that searches them", async () => {
    const call = {
      type: "toolCall",
      id: "call_1",
      name: "write",
      arguments: { path: "memory/heron.md", content: "x" },
    };
    const noted = [
      user("Note where the key is."),
      { type: "message", message: { role: "assistant", content: [call], stopReason: "toolUse" } },
      { type: "message", message: { role: "toolResult", toolCallId: "call_1", toolName: "write", content: "written" } },
      assistant("Noted."),
    ];
    await seed(directory.path, [{ key, drafts: [...noted, ...exchanges(40)] }]);
    const workspace = join(directory.path, "work");
    mkdirSync(join(workspace, "memory"), { recursive: true });
    writeFileSync(join(workspace, "memory/heron.md"), "The heron key hangs behind the stove.\n");
    const chat = ["chat", "--key", key, "--model", "offline", "--workspace", workspace, "--window", "12000"];
    const run = await runHere(directory.path, [...chat, "--once", "hello"], { environment: noKeys });
    expect(run.stderr).toContain("Summarized the older messages");
    const records = objects((await runHere(directory.path, ["show", key, "--raw", "--all", "--json"])).stdout);
    const summary = JSON.stringify(records.find(({ type }) => type === "compaction"));
    expect(summary).toContain("Memory files written since the summary before: memory/heron.md.");
    expect(summary).toContain("memory_search");
    const found = await runHere(directory.path, ["memory", "search", "heron stove", "--workspace", workspace]);
    expect(found.stdout).toContain("hangs behind the stove");
  });
});

describe("compaction by hand", () => {
  it("is reported once by the command", async () => {
    await seed(directory.path, [{ key, drafts: exchanges(20) }]);
    const run = await runHere(directory.path, ["compact", key, "--model", "offline"], { environment: noKeys });
    expect(`${run.stdout}${run.stderr}`.match(/summari(zing|zed) \d+ older/gi)).toHaveLength(1);
  });

  it(
    "compacts more than 4 messages in a conversation, and says why it does not compact fewer",
    { tags: ["slow"] },
    async () => {
      await seed(directory.path, [{ key, drafts: exchanges(20) }]);
      await using terminal = runInTerminal(directory.path, ["chat", "--key", key, "--model", "offline"], {
        environment: noKeys,
        columns: 200,
      });
      await terminal.waitForPrompt();
      await say(terminal, "/compact");
      expect(terminal.text()).toMatch(
        /Summarized \d+ older messages \(extractive\)\. Messages from #\d+ on stay word for word\. ~[\d,]+ → ~[\d,]+ tokens\./,
      );
      await say(terminal, "/new small");
      await say(terminal, "hello");
      await say(terminal, "/compact");
      expect(terminal.text()).toContain(
        "Nothing was summarized: the context has 2 messages, and more than 4 are needed.",
      );
      const { stdout } = await runHere(directory.path, ["show", key, "--all-branches", "--json", "--quiet"]);
      expect(objects(stdout).filter(({ type }) => type === "message")).toHaveLength(40);
    },
  );

  it("plans without asking anybody, compacts with the model that answers, and shows before and after", async () => {
    await seed(directory.path, [{ key, drafts: exchanges(20) }]);
    await using provider = createProviderSimulator({ fallback: () => summary });
    await provider.start();
    const environment = { ...noKeys, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
    const here = async (...args: readonly string[]): Promise<Record<string, unknown>> => {
      const run = await runHere(directory.path, [...args, "--model", model, "--json", "--quiet"], { environment });
      expect(run).toMatchObject({ code: 0, stderr: "" });
      return objects(run.stdout)[0] ?? {};
    };
    const planned = await here("compact", key, "--dry-run");
    expect(planned).toMatchObject({ state: "planned", id: null, seq: null, source: null });
    expect(provider.requests).toEqual([]);
    const before = await only("context", key);
    const made = await here("compact", key);
    expect(made).toMatchObject({ state: "compacted", source: "model", provider: model, needsRetry: false, seq: 41 });
    expect(Number(made["tokensAfter"])).toBeLessThan(Number(made["tokensBefore"]));
    expect(made["firstKeptSeq"]).toBe(planned["firstKeptSeq"]);
    expect(provider.refusals).toEqual([]);
    const after = await only("context", key);
    expect(JSON.stringify(after["messages"])).toContain("no red paint");
    expect(Number((after["gauge"] as { tokens: number }).tokens)).toBeLessThan(
      Number((before["gauge"] as { tokens: number }).tokens),
    );
  });

  it("takes a checkpoint that covers everything without asking a model, and keeps as much as behind any summary", async () => {
    await seed(directory.path, [{ key, drafts: exchanges(20) }]);
    const checkpoint = { summary: "Every quay is looked after; none is painted red.", topics: ["quays"] };
    await using provider = createProviderSimulator({ fallback: () => JSON.stringify(checkpoint) });
    await provider.start();
    const environment = { ...noKeys, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
    const here = async (...args: readonly string[]): Promise<Record<string, unknown>> => {
      const run = await runHere(directory.path, [...args, "--model", model, "--json", "--quiet"], { environment });
      expect(run).toMatchObject({ code: 0, stderr: "" });
      return objects(run.stdout)[0] ?? {};
    };
    await here("checkpoint", key);
    expect(provider.requests).toHaveLength(1);
    const made = await here("compact", key);
    expect(made).toMatchObject({ state: "compacted", source: "checkpoint", needsRetry: false });
    expect(Number(made["messagesRemoved"])).toBeLessThanOrEqual(20);
    expect(provider.requests).toHaveLength(1);
    const after = JSON.stringify((await only("context", key))["messages"]);
    expect(after).toContain("none is painted red");
    expect(after).toContain("Quay 19 is looked after");
  });

  it("leaves the session as it was when it is interrupted", { tags: ["slow"] }, async () => {
    await seed(directory.path, [{ key, drafts: exchanges(20) }]);
    await using provider = createProviderSimulator({
      replies: [{ kind: "answer", content: "word ".repeat(400), delayMs: 30_000 }],
      fallback: () => summary,
    });
    await provider.start();
    const environment = { ...noKeys, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
    const run = await runChild(
      directory.path,
      ["compact", key, "--model", model, "--timeout", "2500", "--json", "--quiet"],
      { environment },
    );
    expect(run.code).toBe(1);
    expect(objects(run.stderr).at(-1)).toMatchObject({ code: "ABORTED" });
    expect(await only("context", key)).toMatchObject({ lastSeq: 40, recordsInContext: 40 });
  });
});

describe("/status", () => {
  it(
    "shows each summarizer's failures, threshold and minutes to the next try, and pending retries",
    { tags: ["slow"] },
    async () => {
      await seed(directory.path, [{ key, drafts: exchanges(20) }]);
      // What a process before had found out, ten minutes ago.
      const openedAtMs = Date.now() - 10 * 60_000;
      const broken = { failures: 3, openedAtMs, lastError: "no answer" };
      writeFileSync(
        join(directory.path, "summarizer-breakers.json"),
        JSON.stringify({ v: 1, summarizers: { [helper]: broken } }),
      );
      nameHelper();
      await using provider = createProviderSimulator({ fallback: () => "" });
      await provider.start();
      await using terminal = runInTerminal(directory.path, ["chat", "--key", key, "--model", model], {
        environment: { ...noKeys, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url },
        columns: 200,
      });
      await terminal.waitForPrompt();
      await say(terminal, "/status");
      expect(terminal.text()).toMatch(
        /breaker +anthropic\/claude-haiku-4-5: open, next try in 20 min, 3 of 3 failures; last: no answer\n/,
      );
      expect(terminal.text()).toMatch(/pending +nothing\n/);
      await say(terminal, "/compact");
      expect(terminal.text()).toContain("No model wrote the summary; a better one is tried later.");
      await say(terminal, "/status");
      expect(terminal.text()).toMatch(/compactions +1\n/);
      // One report, of what was done.
      expect(terminal.text().match(/summari(zing|zed) \d+ older/gi)).toHaveLength(1);
      expect(terminal.text()).toMatch(/pending +1 retry of a summary, (due|next in \d+ min)\n/);
      // The model that answers has no breaker, and the other one is not asked.
      expect(provider.requests.map(({ body }) => (body as { readonly model: string }).model)).toEqual([
        "claude-opus-5",
      ]);
    },
  );

  it("keeps what was found out of a summarizer over the end of the process, for its owner only", async () => {
    await seed(directory.path, [{ key, drafts: exchanges(20) }]);
    await using provider = createProviderSimulator({ fallback: () => "" });
    await provider.start();
    const environment = { ...noKeys, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
    const path = join(directory.path, "summarizer-breakers.json");
    expect(existsSync(path)).toBe(false);
    nameHelper();
    const run = await runHere(directory.path, ["compact", key, "--model", model, "--json"], { environment });
    expect(objects(run.stdout)[0]).toMatchObject({ source: "extractive", needsRetry: true });
    expect(run.stderr).toContain(`No summary by ${model}`);
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({
      v: 1,
      summarizers: { [helper]: expect.objectContaining({ failures: 1 }) as unknown },
    });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });
});

describe("checkpoints by hand", () => {
  it(
    "are made and listed in a conversation and by the commands, and read back after a restart",
    { tags: ["slow"] },
    async () => {
      await seed(directory.path, [{ key, drafts: exchanges(6) }]);
      {
        await using terminal = runInTerminal(directory.path, ["chat", "--key", key, "--model", "offline"], {
          environment: noKeys,
          columns: 200,
        });
        await terminal.waitForPrompt();
        await say(terminal, "/checkpoints");
        expect(terminal.text()).toContain("No checkpoints yet.");
        await say(terminal, "/checkpoint");
        expect(terminal.text()).toMatch(/#13 checkpoint [^\n]*\ncovers to #12, 12 messages/);
        await say(terminal, "/checkpoints");
      }
      expect(await only("checkpoints", key)).toMatchObject({ seq: 13, coversToSeq: 12, messageCountAtCheckpoint: 12 });
      const empty = await runHere(directory.path, ["checkpoint", "agent:main:nothing", "--json"], {
        environment: noKeys,
      });
      expect(objects(empty.stderr).at(-1)).toMatchObject({ code: "SESSION_NOT_FOUND" });
      await runHere(directory.path, ["new", "--key", "agent:main:nothing"]);
      const nothing = await runHere(directory.path, ["checkpoint", "agent:main:nothing", "--json"], {
        environment: noKeys,
      });
      expect([nothing.code, objects(nothing.stderr).at(-1)?.["code"]]).toEqual([1, "INPUT_INVALID"]);
    },
  );
});

describe("a turn", () => {
  it("compacts by itself when the window is nearly full, and tells it on a terminal, in a pipe and as JSON", async () => {
    await seed(directory.path, [{ key, drafts: exchanges(40) }]);
    const args = ["chat", "--key", key, "--model", "offline", "--window", "9000", "--once", "hello"];
    const run = await runHere(directory.path, [...args, "--json"], { environment: noKeys });
    expect(run.code).toBe(0);
    const told = objects(run.stderr).filter(({ kind }) => kind === "event");
    expect(told.map(({ name }) => name)).toContain("compaction.applied");
    const turn = objects(run.stdout)[0] as { events: { name: string; data: Record<string, unknown> }[] };
    const applied = turn.events.find(({ name }) => name === "compaction.applied");
    expect(applied?.data).toMatchObject({ source: "extractive", needsRetry: true });
    expect((await only("context", key, "--window", "9000"))["gauge"]).toMatchObject({ windowTokens: 9000 });
    expect(JSON.stringify((await only("explain", key, "--tail", "1"))["summaryId"])).not.toBe("null");
  });

  it(
    "asks the agent to store memories where it may write files, and shows nobody an answer that is for that alone",
    { tags: ["slow"] },
    async () => {
      await seed(directory.path, [{ key, drafts: exchanges(24) }]);
      await using provider = createProviderSimulator({
        replies: ["NO_REPLY"],
        fallback: () => "All quays are looked after.",
      });
      await provider.start();
      const environment = { ...noKeys, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
      const args = ["chat", "--key", key, "--model", model, "--window", "9200", "--tools", "all", "--once", "hello"];
      const run = await runChild(directory.path, args, { environment });
      expect(run.stderr).toContain("Asked the agent to store what it wants to keep");
      expect(run.stdout).toBe("All quays are looked after.\n");
    },
  );
});
