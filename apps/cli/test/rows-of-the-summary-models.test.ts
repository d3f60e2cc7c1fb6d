import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import type { ProviderSimulator, SimulatedReply } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";

const main = "anthropic/claude-opus-5";
const key = "agent:main:cli:direct:work";
const summary = `Topics:
- quays
Key decisions:
- no red paint
Current state:
- quays are looked after
Open items:
- none`;
const down: SimulatedReply = { kind: "error", status: 404, message: "model not found" };

let directory = temporaryDirectory();
let ollama: ProviderSimulator;
let anthropic: ProviderSimulator;
beforeEach(async () => {
  directory = temporaryDirectory();
  ollama = createProviderSimulator({ ollamaContextTokens: 200_000, fallback: () => summary });
  anthropic = createProviderSimulator({ fallback: () => summary });
  await Promise.all([ollama.start(), anthropic.start()]);
});
afterEach(async () => {
  await Promise.all([ollama.close(), anthropic.close()]);
  directory.remove();
});

function configure(session: Readonly<Record<string, unknown>>, rest: Readonly<Record<string, unknown>> = {}): void {
  writeFileSync(join(directory.path, "config.json"), JSON.stringify({ ...rest, session }));
}

/** A command with the models of both simulators at hand. */
async function throughline(...args: readonly string[]): Promise<Run> {
  const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: anthropic.url, OPENAI_API_KEY: "" };
  return runHere(directory.path, [...args, "--json"], { environment });
}

let sessions = 0;
/** Compacts a new session of twenty exchanges. */
async function compact(...args: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
  const one = `${key}${(sessions += 1)}`;
  const drafts = Array.from({ length: 20 }, (_, index) => [
    user(`Look after quay ${index}, and never paint it red. `.repeat(10)),
    assistant(`Quay ${index} is looked after in src/quay-${index}.ts. `.repeat(12)),
  ]).flat();
  await seed(directory.path, [{ key: one, drafts }]);
  const run = await throughline("compact", one, "--model", main, ...args);
  expect(run).toMatchObject({ code: 0 });
  return objects(run.stdout)[0] ?? {};
}

const asked = ({ requests }: ProviderSimulator): readonly Readonly<Record<string, unknown>>[] =>
  requests
    .filter(({ path }) => /\/messages$|\/api\/chat$/.test(path.replace(/\?.*/, "")))
    .map(({ body }) => body as Readonly<Record<string, unknown>>);

/** What is kept of a summary model over the end of a process. */
function breaker(name: string): Readonly<Record<string, unknown>> | null {
  const path = join(directory.path, "summarizer-breakers.json");
  if (!existsSync(path)) return null;
  const { summarizers } = JSON.parse(readFileSync(path, "utf8")) as {
    readonly summarizers: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };
  return summarizers[name] ?? null;
}

const local = (): Readonly<Record<string, unknown>> => ({ url: ollama.url });
const withOllama = (more: Readonly<Record<string, unknown>> = {}): void =>
  configure({ compaction: { summaryModels: ["ollama"], ollama: local(), ...more } });

describe("a chain of summary models", () => {
  it("asks Ollama in its place, counts its failure, and asks the next one", async () => {
    configure({
      compaction: { summaryModels: ["ollama", "anthropic/claude-haiku-4-5"], ollama: local(), fallbackToMain: false },
    });
    ollama.enqueue(down);
    expect(await compact()).toMatchObject({
      source: "model",
      provider: "anthropic/claude-haiku-4-5",
      needsRetry: false,
    });
    expect(asked(ollama).length).toBeGreaterThan(0);
    expect(asked(anthropic)).toMatchObject([{ model: "claude-haiku-4-5" }]);
    expect(breaker("ollama/qwen2.5:7b")).toMatchObject({ failures: 1, openedAtMs: null });
  });

  it("reads of each message as much as the settings say", async () => {
    for (const chars of [null, 200]) {
      configure({ compaction: { summaryMessageChars: chars } });
      expect(await compact()).toMatchObject({ source: "model" });
      const text = JSON.stringify(asked(anthropic).at(-1));
      expect(text.includes("characters left out")).toBe(chars !== null);
    }
  });

  it("asks nobody else where Ollama answers", async () => {
    withOllama();
    expect(await compact()).toMatchObject({ source: "model", provider: "ollama/qwen2.5:7b" });
    expect([asked(ollama).length, asked(anthropic).length]).toEqual([1, 0]);
  });

  it("without Ollama is the main model, then the summarizer that needs none: nobody else is asked [SUM-09, C28]", async () => {
    expect(await compact()).toMatchObject({ source: "model", provider: main });
    expect(asked(anthropic)).toMatchObject([{ model: "claude-opus-5" }]);
    anthropic.enqueue(...Array.from({ length: 3 }, () => "I cannot help with that."));
    expect(await compact()).toMatchObject({ source: "extractive", needsRetry: true });
    expect(ollama.requests).toEqual([]);
  });

  it("of goclaw-doc is Ollama, then Anthropic, and neither before it was chosen [SUM-01, SUM-02, C28b]", async () => {
    configure({ compaction: { ollama: local() } }, { preset: "goclaw-doc" });
    expect(await compact()).toMatchObject({ provider: "ollama/qwen2.5:7b" });
    expect(asked(anthropic)).toEqual([]);
    ollama.enqueue(down);
    expect(await compact()).toMatchObject({
      source: "model",
      provider: expect.stringMatching(/^anthropic\/claude-/) as string,
    });
    expect(breaker("ollama/qwen2.5:7b")).toMatchObject({ failures: 1 });
    // The main model of these commands is not the one of the preset.
    expect(asked(anthropic).map(({ model }) => model)).not.toContain("claude-opus-5");
  });

  it(
    "sends Ollama its model and its window, at the configured address, and waits as long as it may",
    { tags: ["slow"] },
    async () => {
      const { stdout } = await throughline("config");
      const of = (name: string): unknown =>
        objects(stdout).find((row) => row["key"] === `session.compaction.ollama.${name}`)?.["value"];
      expect(["url", "model", "timeoutSeconds", "contextTokens"].map(of)).toEqual([
        "http://localhost:11434",
        "qwen2.5:7b",
        600,
        131_072,
      ]);
      withOllama();
      await compact();
      expect(asked(ollama)).toMatchObject([{ model: "qwen2.5:7b", options: { num_ctx: 131_072 } }]);
      configure({
        compaction: {
          summaryModels: ["ollama"],
          ollama: { ...local(), timeoutSeconds: 1, model: "small", contextTokens: 8192 },
        },
      });
      ollama.enqueue({ kind: "answer", content: summary, delayMs: 30_000 });
      expect(await compact()).toMatchObject({ provider: main });
      expect(asked(ollama).at(-1)).toMatchObject({ model: "small", options: { num_ctx: 8192 } });
    },
  );
});

describe("a summary model that fails", () => {
  const name = "ollama/qwen2.5:7b";
  const fail = async (): Promise<void> => {
    ollama.enqueue("I cannot help with that.");
    expect(await compact()).toMatchObject({ provider: main });
  };

  it("is left out after three times in a row, and a success sets its count to zero", async () => {
    withOllama();
    await fail();
    await fail();
    expect(breaker(name)).toMatchObject({ failures: 2 });
    expect(await compact()).toMatchObject({ provider: name });
    expect(breaker(name)?.["failures"] ?? 0).toBe(0);
    for (let times = 0; times < 3; times++) await fail();
    const before = asked(ollama).length;
    expect(await compact()).toMatchObject({ provider: main });
    expect(asked(ollama)).toHaveLength(before);
  });

  it("is left out after as many as are set", async () => {
    withOllama({ ollamaFailureThreshold: 1 });
    await fail();
    await compact();
    expect(asked(ollama)).toHaveLength(1);
  });

  const kept = (minutesAgo: number): void =>
    writeFileSync(
      join(directory.path, "summarizer-breakers.json"),
      JSON.stringify({
        v: 1,
        summarizers: { [name]: { failures: 3, openedAtMs: Date.now() - minutesAgo * 60_000, lastError: "no answer" } },
      }),
    );

  it("is tried again after 30 minutes, once: a failure leaves it out anew", async () => {
    withOllama();
    kept(29);
    await compact();
    expect(asked(ollama)).toHaveLength(0);
    kept(31);
    await fail();
    expect(asked(ollama)).toHaveLength(1);
    await compact();
    expect(asked(ollama)).toHaveLength(1);
    kept(31);
    expect(await compact()).toMatchObject({ provider: name });
    expect(await compact()).toMatchObject({ provider: name });
  });
});

describe("the model of checkpoints", () => {
  const content = JSON.stringify({
    summary: "They keep quays.",
    topics: ["quays"],
    keyDecisions: [],
    openQuestions: [],
  });
  const checkpoint = async (one = key): Promise<Run> => {
    const drafts = Array.from({ length: 6 }, (_, index) => [
      user(`Look after quay ${index}.`),
      assistant(`Quay ${index} is looked after.`),
    ]).flat();
    await seed(directory.path, [{ key: one, drafts }]);
    return throughline("checkpoint", one, "--model", main);
  };
  const models = (): readonly unknown[] => asked(anthropic).map(({ model }) => model);

  it("is the cheaper one that is named, and the main one where that fails", async () => {
    configure({ checkpoint: { model: "anthropic/claude-haiku-4-5" } });
    anthropic.enqueue("{}", content);
    const run = await checkpoint();
    expect(run.code).toBe(0);
    expect(models()).toEqual(["claude-haiku-4-5", "claude-opus-5"]);
    expect(run.stdout).toContain("They keep quays.");
  });

  it("is nobody else where the main one may not be asked [CKP-09b, CKP-14, C28]", async () => {
    configure({ checkpoint: { model: "anthropic/claude-haiku-4-5", fallbackToMain: false } });
    anthropic.enqueue("{}", content);
    const run = await checkpoint();
    expect(run.code).not.toBe(0);
    expect(models()).toEqual(["claude-haiku-4-5"]);
  });

  it("is the first of the summary models where none is named for checkpoints, behind the same breaker [CKP-08, C28]", async () => {
    configure({ compaction: { summaryModels: ["anthropic/claude-haiku-4-5"], fallbackToMain: false } });
    anthropic.enqueue(content);
    expect((await checkpoint()).stdout).toContain("They keep quays.");
    expect(models()).toEqual(["claude-haiku-4-5"]);
    configure({
      compaction: { summaryModels: ["ollama", "anthropic/claude-haiku-4-5"], ollama: local(), fallbackToMain: false },
    });
    ollama.enqueue(down);
    anthropic.enqueue(content);
    expect(await checkpoint(`${key}2`)).toMatchObject({ code: 0 });
    expect(asked(ollama).length).toBe(1);
    expect(models()).toEqual(["claude-haiku-4-5", "claude-haiku-4-5"]);
    expect(breaker("ollama/qwen2.5:7b")).toMatchObject({ failures: 1 });
  });

  it("does not matter to where one is kept: an imported session's lies here, and the other program's files stay", async () => {
    const folder = join(directory.path, "elsewhere");
    mkdirSync(folder);
    const lines = [
      { type: "session", version: 3, id: "s1", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/home/ada" },
      {
        type: "message",
        id: "s1-a",
        parentId: null,
        timestamp: "2026-01-01T00:00:01.000Z",
        message: { role: "user", content: "Where are the lamps?" },
      },
    ];
    writeFileSync(join(folder, "s1.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    writeFileSync(
      join(folder, "sessions.json"),
      JSON.stringify({ "agent:main:main": { sessionId: "s1", updatedAt: 1_767_225_601_000 } }),
    );
    const state = (): readonly string[] =>
      readdirSync(folder).map((name) => `${name} ${readFileSync(join(folder, name), "utf8")}`);
    const before = state();
    expect(await throughline("import", folder)).toMatchObject({ code: 0 });
    anthropic.enqueue(content);
    expect(await throughline("checkpoint", "agent:main:main", "--model", main)).toMatchObject({ code: 0 });
    expect(state()).toEqual(before);
    const { stdout } = await throughline("checkpoints", "agent:main:main");
    expect(objects(stdout)[0]).toMatchObject({ kind: "checkpoint", summary: "They keep quays." });
  });
});
