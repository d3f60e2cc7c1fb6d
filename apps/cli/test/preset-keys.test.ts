import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";

const key = "agent:main:cli:direct:work";
/** Nothing listens at this address. */
const noOllama = "http://127.0.0.1:1";
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

function run(preset: string, args: readonly string[], more: Readonly<Record<string, string>> = {}): Promise<Run> {
  return runHere(directory.path, args, {
    environment: {
      THROUGHLINE_PRESET: preset,
      ANTHROPIC_API_KEY: "",
      OPENAI_API_KEY: "",
      OLLAMA_HOST: "",
      THROUGHLINE_SESSION_COMPACTION_OLLAMA_URL: noOllama,
      ...more,
    },
  });
}

async function talk(): Promise<void> {
  const drafts = Array.from({ length: 20 }, (_, index) => [
    user(`Look after quay ${index}, and never paint it red. `.repeat(10)),
    assistant(`Quay ${index} is looked after in src/quay-${index}.ts. `.repeat(12)),
  ]).flat();
  await seed(directory.path, [{ key, drafts }]);
}

function lines(text: string, part: string): readonly string[] {
  return text.split("\n").filter((line) => line.includes(part));
}

const checkpoint = JSON.stringify({
  summary: "The quays are looked after one by one; none of them is painted red.",
  topics: ["quays"],
  keyDecisions: ["no red paint"],
  openQuestions: [],
});

describe("a preset whose models have no key", () => {
  it.each([
    ["goclaw-doc", "summaries are written by ollama/qwen2.5:7b."],
    ["goclaw-spec", "checkpoints are written by extractive."],
  ])("%s answers with the offline model and names the model that is left out once", async (preset, instead) => {
    const { code, stdout, stderr } = await run(preset, ["chat", "--model", "offline", "--once", "hello"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("I answer by rules") });
    expect(lines(stderr, "ANTHROPIC_API_KEY")).toEqual([expect.stringContaining(instead)]);
    const again = await run(preset, ["chat", "--model", "offline", "--once", "hello"]);
    expect(lines(again.stderr, "ANTHROPIC_API_KEY")).toHaveLength(1);
  });

  it("goclaw-doc compacts by rules where neither Ollama nor a key is there", async () => {
    await talk();
    const made = await run("goclaw-doc", ["compact", key, "--model", "offline", "--json"]);
    expect(made.code).toBe(0);
    expect(objects(made.stdout)).toMatchObject([{ state: "compacted", source: "extractive", needsRetry: true }]);
    expect(made.stderr).toContain("No summary by ollama/qwen2.5:7b");
  });

  it("goclaw-doc writes checkpoints with the main model where Ollama does not answer", async () => {
    await talk();
    const made = await run("goclaw-doc", ["checkpoint", key, "--model", "offline", "--json"]);
    expect({ code: made.code, rows: objects(made.stdout) }).toMatchObject({ code: 0, rows: [{ model: "extractive" }] });
  });

  it("goclaw-spec writes checkpoints with the main model without a key of Anthropic", async () => {
    await talk();
    await using provider = createProviderSimulator({ fallback: () => checkpoint, ollamaContextTokens: 100_000 });
    await provider.start();
    const args = ["checkpoint", key, "--model", "ollama/qwen3:8b", "--json"];
    const made = await run("goclaw-spec", args, { OLLAMA_HOST: provider.url });
    expect({ code: made.code, rows: objects(made.stdout) }).toMatchObject({
      code: 0,
      rows: [{ model: "ollama/qwen3:8b", keyDecisions: ["no red paint"] }],
    });
    expect(provider.refusals).toEqual([]);
  });

  it("says that no checkpoints are written where the main model must not write them", async () => {
    const settings = { THROUGHLINE_SESSION_CHECKPOINT_FALLBACK_TO_MAIN: "false" };
    const { code, stderr } = await run("goclaw-spec", ["chat", "--model", "offline", "--once", "hello"], settings);
    expect(code).toBe(0);
    expect(stderr).toContain("anthropic/claude-haiku-4-5 is left out: no checkpoints are written.");
  });

  it("still needs the key of the model that answers", async () => {
    const { code, stderr } = await run("goclaw-doc", ["chat", "--model", "anthropic/claude-opus-5", "--once", "x"]);
    expect(code).toBe(1);
    expect(stderr).toContain("No API key for anthropic: ANTHROPIC_API_KEY is not set.");
  });
});
