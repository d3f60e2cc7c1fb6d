import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { historyTargets } from "@throughline/history/internal";
import type { TargetName } from "@throughline/history/internal";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";

const directory = temporaryDirectory();
const home = directory.path;
const usage = { input: 100, output: 50, cacheRead: 800, cacheWrite: 50 };

interface Gauge {
  readonly tokens: number;
  readonly source: string;
}

const run = (...args: readonly string[]): Promise<Run> => runHere(home, args);

beforeAll(() =>
  seed(home, [
    {
      key: "agent:main:long",
      entry: { label: "Long", contextTokens: 2000 },
      drafts: [
        { ...user("first"), id: "m1" },
        { ...assistant("one", usage), id: "m2" },
        { ...user("second"), id: "m3" },
        { type: "compaction", id: "c1", summary: "they spoke", firstKeptEntryId: "m3", tokensBefore: 1000 },
        { type: "label", id: "l1", targetId: "m3", label: "here" },
        { ...user("third"), id: "m4" },
        { ...assistant("three"), id: "m5" },
      ],
    },
    { key: "agent:sized:counted", entry: { contextTokens: 2000 }, drafts: [user("a"), assistant("b", usage)] },
    { key: "agent:sized:nothing", drafts: [] },
    {
      key: "agent:main:used",
      entry: { contextTokens: 2000 },
      drafts: [user("a"), assistant("b", usage), assistant("c", { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 })],
    },
  ]),
);
afterAll(() => directory.remove());

describe("context", () => {
  const context = async (key: string, ...args: readonly string[]): Promise<Record<string, unknown>> =>
    objects((await run("context", key, "--json", ...args)).stdout)[0] ?? {};

  const gaugeOf = async (...args: readonly [string, ...string[]]): Promise<Gauge> =>
    (await context(...args))["gauge"] as Gauge;

  it("is as full as the provider said of the last call that still holds", async () => {
    expect(await gaugeOf("agent:sized:counted")).toEqual({
      tokens: 1000,
      source: "actual",
      lowTokens: 1000,
      highTokens: 1000,
      windowTokens: 2000,
      percent: 50,
    });
    expect(await gaugeOf("agent:sized:counted", "--window", "8000")).toMatchObject({
      windowTokens: 8000,
      percent: 12.5,
    });
    expect((await run("context", "agent:sized:counted")).stdout).toMatch(
      /\n1,000 \/ 2,000 tokens \(50 %\)\n\[#{20}-{20}\]\n[^]*free +1,000\ncounted by the provider at the last call, /,
    );
  });

  it("adds an estimate of what came after that call", async () => {
    const gauge = await gaugeOf("agent:main:used");
    expect(gauge.source).toBe("actual+delta");
    expect(gauge.tokens).toBeGreaterThan(1000);
    expect(gauge.tokens).toBeLessThan(1100);
    const { stdout } = await run("context", "agent:main:used");
    expect(stdout).toContain(`~${gauge.tokens.toLocaleString("en")} / 2,000 tokens (`);
    expect(stdout).toContain("and an estimate of the records after it");
  });

  it("estimates all after a compaction and for another model, and says what was left out", async () => {
    const built = await context("agent:main:long");
    expect(built).toMatchObject({
      recordsInContext: 4,
      headId: "m5",
      lastSeq: 7,
      gauge: { source: "tokenizer", windowTokens: 2000 },
      omitted: [{ fromSeq: 1, toSeq: 2, reason: "summarized" }],
    });
    expect((await gaugeOf("agent:sized:counted", "--model", "openai/gpt-5")).source).toBe("tokenizer");
    expect((await gaugeOf("agent:sized:counted", "--model", "example/model-1")).source).toBe("actual");
    expect((await run("context", "agent:main:long")).stdout).toMatch(/\n~\d+ \/ 2,000 tokens \(/);
  });

  it("says what an imported compaction left out, which is not read", async () => {
    const lines = [
      { type: "session", version: 3, id: "s1", timestamp: "2026-01-02T03:04:05.000Z", cwd: "/" },
      user("first"),
      assistant("one"),
      user("second"),
      assistant("two"),
      { type: "compaction", summary: "they spoke", firstKeptEntryId: "r2", tokensBefore: 1000 },
      user("third"),
    ].map((line, index) => {
      const place = { id: `r${index}`, parentId: index < 2 ? null : `r${index - 1}` };
      return index === 0 ? line : { ...line, ...place, timestamp: "2026-01-02T03:04:06.000Z" };
    });
    const path = join(home, "compacted.jsonl");
    writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    expect((await run("import", path, "--key", "agent:main:compacted")).code).toBe(0);
    const built = await context("agent:main:compacted");
    expect(built["omitted"]).toEqual([{ fromSeq: 1, toSeq: 2, reason: "summarized" }]);
    expect(built["recordsInContext"]).toBe(5);
    expect((await run("context", "agent:main:compacted")).stdout).toContain("left out: 1 to 2, summarized");
  });

  it.each([["agent:sized:counted"], ["agent:main:used"], ["agent:main:long"], ["agent:sized:nothing"]])(
    "breaks %s down into parts that add up, and shows people the same numbers",
    async (key) => {
      const built = await context(key);
      const { tokens } = built["gauge"] as Gauge;
      const parts = Object.values(built["breakdown"] as Record<string, number>);
      expect(parts.reduce((sum, part) => sum + part, 0)).toBe(tokens);
      expect(parts.every((part) => Number.isInteger(part) && part >= 0)).toBe(true);
      const { stdout } = await run("context", key, "--window", "5000");
      const shown = [...stdout.matchAll(/^ {2}[a-z, ]+ +([\d,]+)$/gm)].map(([, part = ""]) =>
        Number(part.replaceAll(",", "")),
      );
      expect(shown.reduce((sum, part) => sum + part, 0)).toBe(5000);
    },
  );

  it.each(["anthropic", "openai", "openai-responses", "ollama", "gemini", "mistral", "bedrock"])(
    "renders for %s what that provider takes",
    async (provider) => {
      const { messages, repairs, ...rest } = await context("agent:main:long", "--provider", provider);
      expect(rest["provider"]).toBe(provider);
      const violations = historyTargets.get(provider as TargetName)?.validate(messages as unknown[], "model-1");
      expect([violations, JSON.stringify(messages).includes("third")]).toEqual([[], true]);
      expect(Array.isArray(repairs)).toBe(true);
    },
  );

  it("says that the window is unknown, and which option knows", async () => {
    const { stdout } = await run("context", "agent:sized:nothing");
    expect(stdout).toContain("0 tokens, window unknown (--window N)");
    expect(await gaugeOf("agent:sized:nothing")).toMatchObject({ tokens: 0, windowTokens: null, percent: null });
  });

  it("renders for a provider and as text", async () => {
    const anthropic = await context("agent:main:long", "--provider", "anthropic", "--model", "other/model");
    expect(anthropic).toMatchObject({ provider: "anthropic", model: "other/model", recordsInContext: 4 });
    expect((anthropic["messages"] as { role: string }[])[0]).toMatchObject({ role: "user" });
    const text = (await run("context", "agent:main:long", "--provider", "text")).stdout;
    expect(text).toContain("[User]: third");
    expect((await context("agent:main:long", "--provider", "text"))["messages"]).toEqual([text.slice(0, -1)]);
  });
});
