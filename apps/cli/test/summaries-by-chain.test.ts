import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import type { ProviderSimulator, ProviderSimulatorOptions } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, sentBody, temporaryDirectory, user } from "./harness.ts";

const summary = "Topics:\n- quays\nDecisions:\n- no red paint\nCurrent state:\n- painted\nOpen items:\n- none";
const checkpoint = JSON.stringify({
  summary: "They look after quays.",
  topics: ["quays", "paint", "ropes"],
  keyDecisions: ["no red paint"],
  openQuestions: [],
});
const key = "agent:main:cli:direct:work";
type Fields = Readonly<Record<string, unknown>>;

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

function configure(settings: Fields): void {
  writeFileSync(join(directory.path, "config.json"), JSON.stringify(settings));
}

/** A provider that answers conversations, asks for checkpoints, and for summaries. */
async function provider(options: ProviderSimulatorOptions = {}): Promise<ProviderSimulator> {
  const made = createProviderSimulator({
    fallback: (request) => {
      const body = sentBody(request);
      if (body["tools"] !== undefined) return `Done. ${"words ".repeat(30)}`;
      return JSON.stringify(body).includes("JSON object") ? checkpoint : summary;
    },
    ollamaContextTokens: 131_072,
    ...options,
  });
  await made.start();
  return made;
}

async function run(args: readonly string[], environment: Readonly<Record<string, string>>): Promise<Fields> {
  const done = await runHere(directory.path, [...args, "--json", "--quiet"], { environment });
  expect([args[0], done.code, done.stderr]).toEqual([args[0], 0, ""]);
  return objects(done.stdout)[0] ?? {};
}

const keysOf = ({ url }: ProviderSimulator): Record<string, string> => ({
  ANTHROPIC_API_KEY: "sk-test",
  ANTHROPIC_BASE_URL: url,
});
const modelsOf = ({ requests }: ProviderSimulator): readonly unknown[] =>
  requests.map((request) => sentBody(request)).flatMap((body) => (body["tools"] === undefined ? [body["model"]] : []));

describe("the summary chain of a configuration", () => {
  const chain = (url: string): Fields => ({
    model: "anthropic/claude-opus-5",
    session: {
      compaction: {
        summaryModels: ["ollama", "anthropic/claude-haiku-4-5"],
        ollama: { url, model: "qwen2.5:7b", contextTokens: 16_384 },
      },
    },
  });
  const failure = { kind: "error", status: 500, message: "no memory" } as const;

  async function compactEach(
    ollama: ProviderSimulator,
    anthropic: ProviderSimulator,
    count: number,
  ): Promise<Fields[]> {
    configure(chain(ollama.url));
    const results: Fields[] = [];
    for (let at = 0; at < count; at++) {
      const drafts = Array.from({ length: 20 }, (_, turn) => [
        user(`Quay ${turn}? ${"w ".repeat(90)}`),
        assistant(`Quay ${turn}: done.`),
      ]);
      await seed(directory.path, [{ key: `${key}-${at}`, drafts: drafts.flat() }]);
      results.push(await run(["compact", `${key}-${at}`], keysOf(anthropic)));
    }
    return results;
  }

  it("is asked in its order, counts failures from one command to the next, and leaves out a provider after three", async () => {
    await using ollama = await provider({ replies: Array.from({ length: 9 }, () => failure) });
    await using anthropic = await provider();
    const results = await compactEach(ollama, anthropic, 5);
    expect(results.map(({ provider: by }) => by)).toEqual(
      Array.from({ length: 5 }, () => "anthropic/claude-haiku-4-5"),
    );
    expect(results.map(({ needsRetry }) => needsRetry)).not.toContain(true);
    expect(modelsOf(ollama)).toEqual(["qwen2.5:7b", "qwen2.5:7b", "qwen2.5:7b"]);
    expect(modelsOf(anthropic)).toHaveLength(5);
  });

  it("starts counting again after a success, and asks for a plain text under its headings", async () => {
    await using ollama = await provider({ replies: [failure, failure, summary, failure, failure, summary] });
    await using anthropic = await provider();
    const results = await compactEach(ollama, anthropic, 6);
    expect(results.map(({ provider: by }) => String(by).split("/")[0])).toEqual([
      "anthropic",
      "anthropic",
      "ollama",
      "anthropic",
      "anthropic",
      "ollama",
    ]);
    expect(modelsOf(ollama)).toHaveLength(6);
    const asked = sentBody(ollama.requests[0]);
    expect(asked).toMatchObject({ model: "qwen2.5:7b", options: { num_ctx: 16_384, num_predict: 2000 } });
    for (const heading of ["Topics:", "Decisions:", "Current state:", "Open items:"])
      expect([heading, JSON.stringify(asked["messages"]).includes(heading)]).toEqual([heading, true]);
  });
});

describe("checkpoints of a conversation", () => {
  /** Turns of about 7 % of a window of 40,000; gives what was asked beside the answers, by turn. */
  async function talk(settings: Fields, turns: number, words = 560): Promise<readonly (readonly unknown[])[]> {
    configure({ session: { memoryFlush: { enabled: false }, checkpoint: settings } });
    await using model = await provider({ models: { "*": { windowTokens: 40_000 } } });
    const asked: (readonly unknown[])[] = [];
    const chat = ["chat", "--key", key, "--model", "anthropic/claude-opus-5", "--window", "40000"];
    for (let turn = 0; turn < turns; turn++) {
      const before = modelsOf(model).length;
      await run([...chat, "--once", `turn ${turn} ${"look after the quay ".repeat(words)}`], keysOf(model));
      asked.push(modelsOf(model).slice(before));
    }
    expect(model.refusals).toEqual([]);
    return asked;
  }

  const one = ["claude-opus-5"];
  it("are asked for once at each share of the window", async () => {
    const asked = await talk({ minTokensForGen: 1000, turnThreshold: 1000 }, 8);
    expect(asked).toEqual([[], [], [], one, [], [], one, []]);
  });

  it("are asked of their own model after so many messages, and start counting again", async () => {
    const asked = await talk({ turnThreshold: 2, minTokensForGen: 1, model: "anthropic/claude-haiku-4-5" }, 5, 20);
    expect(asked).toEqual([[], ["claude-haiku-4-5"], [], ["claude-haiku-4-5"], []]);
  });

  it("are asked of the model that answers when their own gives none", async () => {
    configure({
      session: { checkpoint: { turnThreshold: 1, minTokensForGen: 1, model: "anthropic/claude-haiku-4-5" } },
    });
    const gone = { kind: "error", status: 404, message: "model: claude-haiku-4-5" } as const;
    await using model = await provider({ replies: ["Done.", gone] });
    await run(["chat", "--key", key, "--once", "hello", "--model", "anthropic/claude-opus-5"], keysOf(model));
    expect(modelsOf(model)).toEqual(["claude-haiku-4-5", "claude-opus-5"]);
    const made = await run(["checkpoints", key], keysOf(model));
    expect(made).toMatchObject({ summary: "They look after quays.", model: "anthropic/claude-opus-5" });
  });

  it("record what they cost, and so do compactions", async () => {
    configure({
      session: { checkpoint: { turnThreshold: 1, minTokensForGen: 1 }, compaction: { preferCheckpoint: false } },
    });
    await using model = await provider();
    const drafts = Array.from({ length: 20 }, (_, turn) => [
      user(`Quay ${turn}? ${"w ".repeat(90)}`),
      assistant(`Quay ${turn}: done.`),
    ]);
    await seed(directory.path, [{ key, drafts: drafts.flat() }]);
    const named = ["--model", "anthropic/claude-opus-5"];
    await run(["chat", "--key", key, "--once", "hello", ...named], keysOf(model));
    await run(["compact", key, ...named], keysOf(model));
    const shown = await runHere(directory.path, ["show", key, "--all-branches", "--json", "--quiet"]);
    const records = objects(shown.stdout).flatMap(({ record }) => (record === undefined ? [] : [record as Fields]));
    const usageIn = (type: string, field: string): unknown =>
      records.filter((record) => record["type"] === type).map((record) => (record[field] as Fields)["usage"]);
    const cost = { calls: 1, input: expect.any(Number) as unknown, output: expect.any(Number) as unknown };
    expect(usageIn("checkpoint", "checkpoint")).toMatchObject([cost]);
    expect(usageIn("compaction", "details")).toMatchObject([cost]);
  });

  it("are not made under the floor, nor when they are off", async () => {
    expect((await talk({ turnThreshold: 1 }, 3, 20)).flat()).toEqual([]);
    expect((await talk({ enabled: false, turnThreshold: 1, minTokensForGen: 1 }, 5)).flat()).toEqual([]);
  });
});
