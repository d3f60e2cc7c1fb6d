import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import type { ProviderSimulator, ReceivedRequest } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { writeOpenclawSessions } from "../../../packages/agent/test/openclaw-sessions.ts";
import { managementBlock, migrationBlock, persistenceBlock } from "../../../packages/config/test/documents.ts";
import { objects, runHere, temporaryDirectory } from "./harness.ts";
import type { Run } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";
import type { Terminal } from "./terminal.ts";

let directory = temporaryDirectory();
let home = "";
let workspace = "";
beforeEach(() => {
  directory = temporaryDirectory();
  home = join(directory.path, ".throughline");
  workspace = join(directory.path, "work");
  mkdirSync(home);
  mkdirSync(workspace);
});
afterEach(() => directory.remove());

/** What the provider got, as far as the documents speak of it. */
interface Asked {
  readonly model: string;
  readonly system: string;
  /** Everything but the system prompt. */
  readonly messages: string;
  readonly tools: readonly string[];
  readonly maxTokens: number | undefined;
}

function asked({ body }: ReceivedRequest): Asked {
  const { model, system, messages, tools, max_tokens } = body as Readonly<Record<string, unknown>>;
  return {
    model: String(model),
    system: typeof system === "string" ? system : JSON.stringify(system ?? ""),
    messages: JSON.stringify(messages),
    tools: ((tools ?? []) as readonly { readonly name: string }[]).map(({ name }) => name),
    maxTokens: max_tokens as number | undefined,
  };
}

const checkpoint = {
  summary: "The lamps of the quay are counted every week, and the fourth lamp is broken since March.",
  topics: ["lamps"],
  keyDecisions: ["count every week"],
  openQuestions: ["who repairs the fourth lamp?"],
};

interface Said {
  /** What was printed beside the answer. */
  readonly notes: string;
  readonly asked: readonly Asked[];
  /** Of these, what the model that answers got. */
  readonly main: readonly Asked[];
}

const chatArguments = ["--model", "anthropic/claude-opus-5"];

/** A chat whose configuration file is a block of a document, with a window of 200,000 tokens. */
class DocumentChat implements AsyncDisposable {
  readonly provider: ProviderSimulator;
  readonly #environment: Readonly<Record<string, string>>;
  /** What the main model says that its context holds; null: what it counts. */
  #tokens: number | null = 0;
  #memory: string | null = null;

  constructor(block: string, environment: Readonly<Record<string, string>> = {}) {
    writeFileSync(join(home, "config.json"), block);
    this.#environment = environment;
    this.provider = createProviderSimulator({
      fallback: (request) => this.#answer(request),
      ollamaContextTokens: 131_072,
    });
  }

  #answer(
    request: ReceivedRequest,
  ): ReturnType<NonNullable<Parameters<typeof createProviderSimulator>[0]>["fallback"] & object> {
    const { model, messages } = asked(request);
    if (!model.includes("opus")) return { kind: "answer", content: JSON.stringify(checkpoint) };
    const usage = this.#tokens === null ? {} : { inputTokens: this.#tokens, outputTokens: 10 };
    const wantsMemory = messages.includes("Store durable memories now") && !messages.includes("tool_result");
    if (!wantsMemory || this.#memory === null) return { kind: "answer", content: "Noted.", usage };
    const input = { path: this.#memory, content: "The fourth lamp is broken.\n" };
    return { kind: "answer", content: [{ type: "tool-call", name: "write", input }], usage };
  }

  /** One turn of a process of its own, after which the context holds so many tokens by the provider's count. */
  async say(text: string, tokens: number | null, windowTokens = 200_000): Promise<Said> {
    this.#tokens = tokens;
    const from = this.provider.requests.length;
    const run = await this.run(["chat", ...chatArguments, "--window", String(windowTokens), "--once", text]);
    expect(run, run.stderr).toMatchObject({ code: 0 });
    expect(this.provider.refusals).toEqual([]);
    return { notes: run.stderr, ...this.#askedSince(from) };
  }

  /** The same in one conversation on a terminal. The model writes to this file when it is asked to store memories. */
  async type(terminal: Terminal, text: string, tokens: number | null, memory: string | null = null): Promise<Said> {
    this.#tokens = tokens;
    this.#memory = memory;
    const [from, printed] = [this.provider.requests.length, terminal.text().length];
    terminal.write(`${text}\r`);
    await terminal.waitFor("Noted.");
    await terminal.waitForPrompt();
    expect(this.provider.refusals).toEqual([]);
    return { notes: terminal.text().slice(printed), ...this.#askedSince(from) };
  }

  #askedSince(from: number): Pick<Said, "asked" | "main"> {
    const requests = this.provider.requests.slice(from).map(asked);
    return { asked: requests, main: requests.filter(({ model }) => model.includes("opus")) };
  }

  async terminal(): Promise<Terminal> {
    const environment = { ...this.#keys(), HOME: directory.path };
    const args = ["chat", ...chatArguments, "--window", "200000", "--workspace", workspace];
    const terminal = runInTerminal(directory.path, args, { environment, columns: 400 });
    await terminal.waitForPrompt();
    return terminal;
  }

  run(args: readonly string[]): Promise<Run> {
    return runHere(directory.path, args, { environment: this.#keys(), cwd: workspace });
  }

  #keys(): Readonly<Record<string, string>> {
    const { url } = this.provider;
    const keys = {
      ANTHROPIC_API_KEY: "sk-test",
      ANTHROPIC_BASE_URL: url,
      OPENAI_API_KEY: "",
      OLLAMA_HOST: url,
      THROUGHLINE_SESSION_COMPACTION_OLLAMA_URL: url,
    };
    return { ...keys, THROUGHLINE_HOME: home, ...this.#environment };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.provider[Symbol.asyncDispose]();
  }
}

async function open(block: string, environment: Readonly<Record<string, string>> = {}): Promise<DocumentChat> {
  const chat = new DocumentChat(block, environment);
  await chat.provider.start();
  return chat;
}

function hashes(folder: string): readonly string[] {
  return readdirSync(folder)
    .toSorted()
    .map(
      (name) =>
        `${name} ${createHash("sha256")
          .update(readFileSync(join(folder, name)))
          .digest("hex")}`,
    );
}

describe("the first block of the specification of persistence, in chat", () => {
  it("inherits every session, keeps its own elsewhere, and opens the default key", { tags: ["slow"] }, async () => {
    const folder = writeOpenclawSessions(directory.path);
    const before = hashes(folder);
    await using chat = await open(persistenceBlock);
    const { notes, asked: requests } = await chat.say("and now?", 100);
    expect(requests[0]?.messages).toContain("where are the lamps of s1?");
    expect(notes).toContain("Imported 2 sessions");
    const rows = objects((await chat.run(["sessions", "--json", "--quiet"])).stdout);
    const keys = rows.flatMap(({ kind, key }) => (kind === "session" ? [key] : []));
    expect(keys).toEqual(["agent:main:main", "agent:main:discord:dm:ada"]);
    expect(hashes(folder)).toEqual(before);
    expect(readdirSync(home)).toEqual(expect.arrayContaining(["agents"]));
  });

  it("prints every line that is used otherwise than it is printed, and no other [CFG-02, C23, C35]", async () => {
    await using chat = await open(persistenceBlock);
    const { notes } = await chat.say("hello", 100);
    expect(notes.split("\n").filter((line) => /^(session\.|Sessions |tools)/.test(line))).toEqual([
      "session.storage is read as session.store.",
      "session.path is read as session.storePath.",
      "session.inherit is read as session.inherit.enabled.",
      expect.stringMatching(/^Sessions are inherited from .*; they are kept in jsonl:/),
      expect.stringContaining('"anthropic/claude-haiku-4-5" is used'),
      expect.stringContaining("tools is memory"),
      expect.stringMatching(
        /reserveTokens is 4000; 20000 is used: .* set session\.compaction\.reserveFloorTokens to 4000 as well/,
      ),
      expect.stringMatching(/thresholds has one at 90 %; it fires at 88 %/),
    ]);
  });

  it(
    "makes checkpoints with the cheaper model at 25 % and at 15 messages, above 10,000 tokens",
    { tags: ["slow"] },
    async () => {
      await using chat = await open(persistenceBlock);
      const byHaiku = (requests: readonly Asked[]): number =>
        requests.filter(({ model }) => model === "claude-haiku-4-5").length;
      expect(byHaiku((await chat.say("one", 9000)).asked)).toBe(0);
      const { notes, asked: requests } = await chat.say("two", 52_000);
      expect([byHaiku(requests), notes]).toEqual([
        1,
        expect.stringContaining("Wrote a checkpoint (anthropic/claude-haiku-4-5)"),
      ]);
      for (let turn = 1; turn < 15; turn++) expect(byHaiku((await chat.say(`turn ${turn}`, 53_000)).asked)).toBe(0);
      expect(byHaiku((await chat.say("turn 15", 53_000)).asked)).toBe(1);
      const { stdout } = await chat.run(["checkpoints", "agent:main:main", "--json", "--quiet"]);
      expect(objects(stdout).filter(({ kind }) => kind === "checkpoint")).toHaveLength(2);
    },
  );

  it("speaks at 50, 75 and 90 % as printed, and shows how full the context is", { tags: ["slow"] }, async () => {
    await using chat = await open(persistenceBlock, { THROUGHLINE_PRESET: "goclaw-spec" });
    await using terminal = await chat.terminal();
    const first = await chat.type(terminal, "one", 104_000);
    expect(first.main[0]?.system).toMatch(/\[Context: \d+k\/200k tokens \(\d+%\)\]/);
    expect(first.main[0]?.tools).toEqual(expect.arrayContaining(["read", "write", "edit"]));
    const half = await chat.type(terminal, "two", 152_000);
    expect(half.main[0]?.system).toMatch(/\[Context: 10[34]k\/200k tokens \(5[12]%\)\]/);
    expect(half.main[0]?.system).toContain("Context at 50%. Consider noting key decisions to memory.");
    const medium = await chat.type(terminal, "three", 181_000);
    expect(medium.main[0]?.system).toMatch(
      /Context at 75%\. Write important context to memory\/\d{4}-\d\d-\d\d\.md now\./,
    );
    expect(medium.notes).not.toContain("the agent was asked");
    const urgent = await chat.type(terminal, "four", 182_000, "memory/lamps.md");
    expect(urgent.main[0]?.messages).toContain(
      String.raw`[SYSTEM: pre-compaction memory flush]\nContext at 90%. Compaction imminent.\nStore durable memories now (use memory/`,
    );
    expect(urgent.notes).toContain("The agent stored memories.");
    expect(readFileSync(join(workspace, "memory/lamps.md"), "utf8")).toBe("The fourth lamp is broken.\n");
  });

  it(
    "compacts at the reserve of 4,000 with a checkpoint and without a model, under the preset [CMP-01, CMP-06, C23]",
    { tags: ["slow"] },
    async () => {
      await using chat = await open(persistenceBlock, { THROUGHLINE_PRESET: "goclaw-spec" });
      // Compaction is due at 36,000; with the floor of 20,000 it would be at 30,000.
      const long = "the lamps of the quay are counted. ".repeat(300);
      let before: number | null = null;
      for (let turn = 0; turn < 30 && before === null; turn++) {
        const { notes, main } = await chat.say(`turn ${turn}: ${long}`, null, 40_000);
        const compacted = /Summarized the older messages \(checkpoint\)\. ([\d,]+) → ~[\d,]+ tokens\./.exec(notes);
        expect(compacted !== null || !/compact(ing|ed):/.test(notes), notes).toBe(true);
        if (compacted === null) continue;
        before = Number(compacted[1]?.replaceAll(",", ""));
        expect(main.at(-1)?.messages).toContain("the fourth lamp is broken since March");
      }
      // With the floor it would have come within a turn of 30,000.
      expect(before).toBeGreaterThan(34_000);
      // Nobody was asked for a summary; only checkpoints were written beside the answers.
      const others = chat.provider.requests.map(asked).filter(({ model }) => !model.includes("opus"));
      expect(others.every(({ messages }) => messages.includes("openQuestions"))).toBe(true);
    },
  );
});

describe("the second block of the specification of persistence, in chat", () => {
  it("inherits the sessions at its source into the database at its path", async () => {
    const folder = writeOpenclawSessions(directory.path);
    const before = hashes(folder);
    await using chat = await open(migrationBlock);
    const { notes } = await chat.say("and now?", 100);
    expect(notes).toContain("session.path is read as session.storePath.");
    expect(notes).toContain("Imported 2 sessions");
    const rows = objects((await chat.run(["sessions", "--json", "--quiet"])).stdout);
    const keys = rows.flatMap(({ kind, key }) => (kind === "session" ? [key] : []));
    expect(keys).toEqual(expect.arrayContaining(["agent:main:main", "agent:main:discord:dm:ada"]));
    const database = join(directory.path, ".openclaw/goclaw/sessions.db");
    expect(readFileSync(database).subarray(0, 15).toString()).toBe("SQLite format 3");
    expect(hashes(folder)).toEqual(before);
  });
});

describe("the block of the page on session management, in chat", () => {
  it(
    "keeps the store at its path, and asks Ollama for checkpoints at 25 % and at 10 messages",
    { tags: ["slow"] },
    async () => {
      await using chat = await open(managementBlock);
      const byOllama = (requests: readonly Asked[]): number =>
        requests.filter(({ model }) => model === "qwen2.5:7b").length;
      expect(byOllama((await chat.say("one", 4000)).asked)).toBe(0);
      const quarter = await chat.say("two", 52_000);
      expect(quarter.notes).toContain("Wrote a checkpoint (ollama/qwen2.5:7b)");
      const asking = chat.provider.requests.find(({ body }) => JSON.stringify(body).includes("qwen2.5:7b"))?.body;
      expect(asking).toMatchObject({ model: "qwen2.5:7b", options: { num_ctx: 131_072 } });
      for (let turn = 1; turn < 10; turn++) expect(byOllama((await chat.say(`turn ${turn}`, 53_000)).asked)).toBe(0);
      expect(byOllama((await chat.say("turn 10", 53_000)).asked)).toBe(1);
      expect(readdirSync(join(directory.path, ".openclaw"))).toContain("sessions.db");
    },
  );

  it("compacts at 170,000 tokens, and under the preset not before", { tags: ["slow"] }, async () => {
    await using chat = await open(managementBlock, { THROUGHLINE_PRESET: "goclaw-doc" });
    await using terminal = await chat.terminal();
    for (const text of ["one", "two", "three"])
      await chat.type(terminal, `${text}: ${"count the lamps. ".repeat(20)}`, 3000);
    await chat.type(terminal, "much", 160_000);
    const below = await chat.type(terminal, "below", 170_500);
    expect(below.notes).not.toContain("compact");
    const above = await chat.type(terminal, "above", 60_000);
    expect(above.notes).toContain("Summarized the older messages");
  });
});

describe("the preset openclaw, in chat", () => {
  it(
    "asks once at 176,000 tokens for memories, and /new resets the session [CFG-07, C17]",
    { tags: ["slow"] },
    async () => {
      await using chat = await open('{ "preset": "openclaw" }');
      await using terminal = await chat.terminal();
      await chat.type(terminal, "one", 172_000);
      const below = await chat.type(terminal, "two", 177_000);
      expect(below.notes).not.toContain("the agent was asked");
      const at = await chat.type(terminal, "three", 1000, "memory/lamps.md");
      expect(at.main[0]?.messages).toContain("Pre-compaction memory flush: at 8");
      expect(at.notes).toContain("(Asked the agent to store what it wants to keep");
      const before = objects((await chat.run(["sessions", "--json", "--quiet"])).stdout);
      terminal.write("/new\r");
      await terminal.waitForPrompt();
      const after = objects((await chat.run(["sessions", "--json", "--quiet"])).stdout);
      expect(after.filter(({ kind }) => kind === "session")).toHaveLength(1);
      expect(after[0]?.["sessionId"]).not.toBe(before[0]?.["sessionId"]);
    },
  );
});

describe("a block that cannot work as it is written", () => {
  const say = ["chat", "--model", "offline", "--once", "hello"];

  it.each([
    ['{ "session": { "checkpoint": { "tokenThresholdPercent": [25] } } }', /did you mean .*tokenThresholdPercents\?/],
    ['{ "session": { "memoryFlush": { "showInSystemprompt": true } } }', /did you mean .*showInSystemPrompt\?/],
    ['{ "preset": "goclaw" }', /preset is "goclaw"; it must be one of claw0, goclaw-doc, goclaw-spec, openclaw/],
    ['{ "session": { "compaction": { "keepPercent": 40, "emergencyKeepPercent": 10 } } }', /it must be at least 40/],
  ])("is refused in one sentence: %s", async (block, message) => {
    await using chat = await open(block);
    const { code, stderr } = await chat.run(say);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(message);
    expect(stderr).toContain("config.json:1");
  });

  it("names what is used where a flag or a window contradicts a preset, and how to keep it [CFG-08, C24]", async () => {
    await using chat = await open('{ "preset": "goclaw-spec" }');
    const off = await chat.run([...say, "--tools", "read"]);
    expect(off.stderr).toContain(
      "session.memoryFlush.enabled is true; false is used: tools is read, so no tool could write a file; set tools to memory or all, or pass --tools all.",
    );
    const small = await chat.run([...say, "--window", "40000"]);
    expect(small.stderr).toMatch(/session\.memoryFlush\.thresholds has one at 90 %; it fires at 85 %/);
  });
});
