import { createProviderSimulator } from "@throughline/testing";
import { expect, it } from "vitest";
import { anthropic } from "../src/anthropic.ts";
import { offline } from "../src/offline.ts";
import { ollama } from "../src/ollama.ts";
import { openai } from "../src/openai.ts";

const apiKey = "any";

it.each([
  ["claude-opus-5", true],
  ["claude-2.1", false],
  ["another-model", null],
])("Anthropic's %s reads images: %s", async (modelId, expected) => {
  const { chat } = anthropic(modelId, { apiKey });
  expect(await chat.takesImages?.(modelId)).toBe(expected);
});

it.each([
  ["gpt-5", true],
  ["gpt-4o-mini", true],
  ["gpt-4-turbo", true],
  ["o3", true],
  ["o3-mini", false],
  ["gpt-4-0613", false],
  ["gpt-3.5-turbo", false],
  ["qwen3-32b", null],
])("OpenAI's %s reads images: %s, in both wire formats", async (modelId, expected) => {
  for (const api of ["openai", "openai-responses"] as const) {
    const { chat } = openai(modelId, { apiKey, api });
    expect(await chat.takesImages?.(modelId)).toBe(expected);
  }
});

it("a model of Ollama reads images where the server states it", { tags: ["slow"] }, async () => {
  const described = { vision: { capabilities: ["completion", "vision"] }, plain: { capabilities: ["completion"] } };
  await using provider = createProviderSimulator({ models: described });
  await provider.start();
  const { chat } = ollama("vision", { baseUrl: provider.url });
  expect(await Promise.all(["vision", "plain"].map((modelId) => chat.takesImages?.(modelId)))).toEqual([true, false]);
});

it("the offline rules read no images", async () => {
  expect(await offline().chat.takesImages?.("offline-rules")).toBe(false);
});
