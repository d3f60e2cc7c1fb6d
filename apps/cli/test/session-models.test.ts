import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, sentBody, temporaryDirectory } from "./harness.ts";
import type { Run } from "./harness.ts";

const key = "agent:main:cli:direct:models";
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const run = (...args: readonly string[]): Promise<Run> => runHere(directory.path, args);

async function must(...args: readonly string[]): Promise<void> {
  expect(await run(...args)).toMatchObject({ code: 0 });
}

async function append(record: Readonly<Record<string, unknown>>): Promise<void> {
  const { code } = await runHere(directory.path, ["append", key], { stdin: `${JSON.stringify(record)}\n` });
  expect(code).toBe(0);
}

interface Asked {
  readonly said: string;
  readonly model: unknown;
  /** How long the model was told to think; undefined where it was not told to. */
  readonly effort: unknown;
}

/** A turn with a key of Anthropic's, and what the provider got. */
async function asked(...args: readonly string[]): Promise<Asked> {
  await using provider = createProviderSimulator({ fallback: () => "Here." });
  await provider.start();
  const { code, stdout, stderr } = await runHere(directory.path, ["chat", "--key", key, "--once", "Hi", ...args], {
    environment: { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url },
  });
  expect({ code, stdout, refusals: provider.refusals }).toEqual({ code: 0, stdout: "Here.\n", refusals: [] });
  const { model, output_config: output } = sentBody(provider.requests.at(-1));
  return { said: stderr, model, effort: (output as { readonly effort?: unknown } | undefined)?.effort };
}

describe("the model of a conversation", () => {
  it("is the one of the settings, else the entry's override, else what the records last named", async () => {
    await must("new", "--key", key);
    expect((await asked()).said).toContain("(ANTHROPIC_API_KEY is set)");
    await append({ type: "model_change", provider: "anthropic", modelId: "claude-opus-4-6" });
    expect(await asked()).toMatchObject({ model: "claude-opus-4-6" });
    await must("entry", key, "set", "modelOverride", "claude-opus-5");
    const overridden = await asked();
    expect(overridden.model).toBe("claude-opus-5");
    expect(overridden.said).toContain("model: anthropic/claude-opus-5 (the session's override)");
    await must("entry", key, "set", "providerOverride", "anthropic");
    expect(await asked()).toMatchObject({ model: "claude-opus-5" });
    expect(await asked("--model", "anthropic/claude-sonnet-4-6")).toMatchObject({ model: "claude-sonnet-4-6" });
  });

  it(
    "of a fork of an import is that of a key here, else the one that the transcript names",
    { tags: ["slow"] },
    async () => {
      const stem = { timestamp: "2026-01-01T00:00:00.000Z" };
      const lines = [
        { type: "session", version: 3, id: "m1", ...stem, cwd: "/home/ada" },
        { type: "message", id: "a", parentId: null, ...stem, message: { role: "user", content: "Hi" } },
        { type: "model_change", id: "b", parentId: "a", ...stem, provider: "anthropic", modelId: "claude-opus-5" },
        { type: "thinking_level_change", id: "c", parentId: "b", ...stem, thinkingLevel: "medium" },
      ];
      const file = join(directory.path, "m1.jsonl");
      writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      await must("import", file, "--key", key);
      expect(await asked()).toMatchObject({ model: "claude-sonnet-5" });
      expect(await asked("--model", "anthropic/claude-opus-5")).toMatchObject({ effort: "medium" });
      await append({ type: "model_change", provider: "ollama", modelId: "qwen3:8b" });
      const { stderr } = await run("chat", "--key", key, "--once", "Hi", "--timeout", "5000");
      expect(stderr).toContain("model: ollama/qwen3:8b (the session's own)");
    },
  );

  it.each([
    [
      { providerOverride: "openai", modelOverride: "gpt-5" },
      /"openai\/gpt-5".+OPENAI_API_KEY is not set.+Set OPENAI_API_KEY/,
    ],
    [{ providerOverride: "nobody", modelOverride: "gpt-5" }, /"nobody\/gpt-5".+no provider of that name is known/],
    [{ providerOverride: "anthropic" }, /"anthropic".+which names no model/],
    [{ modelOverride: "claude-opus-5" }, /"claude-opus-5".+which names no provider/],
  ])("is another one where that of the entry cannot be used, and says so: %j", async (fields, note) => {
    await must("new", "--key", key);
    for (const [field, value] of Object.entries(fields)) await must("entry", key, "set", field, value);
    const { said, model } = await asked();
    expect([model, said]).toEqual(["claude-sonnet-5", expect.stringMatching(note)]);
    for (const field of Object.keys(fields)) {
      expect(said).toContain(`entry ${key} unset ${field}`);
      await must("entry", key, "unset", field);
    }
    expect((await asked()).said).not.toContain("The entry names");
  });
});

describe("the thinking of a turn", () => {
  const model = ["--model", "anthropic/claude-opus-5"];

  it("is as long as the entry says, else as the records last said", async () => {
    await must("new", "--key", key);
    expect((await asked(...model)).effort).toBeUndefined();
    await append({ type: "thinking_level_change", thinkingLevel: "high" });
    expect((await asked(...model)).effort).toBe("high");
    const { stdout } = await run("context", key, "--json");
    expect(objects(stdout)[0]).toMatchObject({ thinkingLevel: "high" });
    await must("entry", key, "set", "thinkingLevel", "low");
    expect((await asked(...model)).effort).toBe("low");
    await must("entry", key, "set", "thinkingLevel", "off");
    expect((await asked(...model)).effort).toBeUndefined();
  });

  it("is nothing where the session was talking to another model, which may have thought", async () => {
    await must("new", "--key", key);
    await append({ type: "model_change", provider: "anthropic", modelId: "claude-opus-4-6" });
    await append({ type: "thinking_level_change", thinkingLevel: "high" });
    expect((await asked("--model", "anthropic/claude-haiku-4-5")).effort).toBeUndefined();
  });

  it("passes over a word that is no level, and says how to set one", async () => {
    await must("new", "--key", key);
    await must("entry", key, "set", "thinkingLevel", "ultra");
    await append({ type: "thinking_level_change", thinkingLevel: "medium" });
    const { effort, said } = await asked(...model);
    expect(effort).toBe("medium");
    expect(said).toMatch(
      /The entry names the thinking level "ultra", which is not one of off, .+`.*entry \S+ set thinkingLevel high`/,
    );
    await must("entry", key, "set", "thinkingLevel", "high");
    expect((await asked(...model)).said).not.toContain("thinking level");
  });
});
