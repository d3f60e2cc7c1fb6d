import { join } from "node:path";
import type { Context } from "@throughline/history";
import { historyTargets } from "@throughline/history/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { casesRoot, contextOf, hasCases, importOne, readCase, wordsOf } from "./corpus-cases.ts";
import { exported, fixtureFolder, importAll, refOf } from "./fixture-folder.ts";

/** What each provider gets, and what was changed for it. A provider that would refuse it fails the test. */
function sent(context: Context): readonly (readonly [text: string, repairs: readonly string[]])[] {
  return [...historyTargets.values()].map((target) => {
    const { messages, repairs } = target.render(context);
    expect([target.name, target.validate(messages, context.model?.modelId ?? null)]).toEqual([target.name, []]);
    return [JSON.stringify(messages), repairs.map(({ rule }) => rule)] as const;
  });
}

const count = (text: string, part: string): number => text.split(part).length - 1;
const madeUp = "No result was recorded for this call";

describe.skipIf(!hasCases)("a file of the reports", () => {
  it("b01 gets one made-up result, reported, for the call that was interrupted", async () => {
    const { words, context } = await readCase("reports/b01-interrupted-parallel.jsonl");
    expect(words.filter((one) => one.startsWith("=")).map((one) => one.split(" ")[0])).toEqual([
      "=toolu_1a",
      "=toolu_1b",
    ]);
    for (const [text, repairs] of sent(context))
      expect([count(text, madeUp), repairs.filter((rule) => rule === "result-synthesized").length]).toEqual([1, 1]);
  });

  it("b02 leaves a result without its call out, reported", async () => {
    const { context } = await readCase("reports/b02-orphan-result.jsonl");
    for (const [text, repairs] of sent(context))
      expect([text.includes("text of a"), text.includes("It says hello."), repairs]).toEqual([
        false,
        true,
        ["orphan-result"],
      ]);
  });

  it.each(["b06-compaction-cuts-call.jsonl", "b06-compaction-cuts-call-midflight.jsonl"])(
    "%s is valid for every provider, and has one result a call for Claude Code",
    async (file) => {
      await using store = createMemoryStore();
      const source = await importOne(store, join(casesRoot, "reports", file));
      sent(await contextOf(store, source));
      const text = await exported(store, refOf(source), "claude-code");
      const calls = [...text.matchAll(/"type":"tool_use","id":"(\w+)"/g)].map(([, id = ""]) => id);
      expect(calls.length).toBeGreaterThan(0);
      for (const id of calls) expect([id, count(text, `"tool_use_id":"${id}"`)]).toEqual([id, 1]);
    },
  );

  it("compact-result/pi-kept-open-call has one result in Claude Code, and the same context again", async () => {
    await using store = createMemoryStore();
    const source = await importOne(store, join(casesRoot, "compact-result/pi-kept-open-call.jsonl"));
    const text = await exported(store, refOf(source), "claude-code");
    expect(count(text, '"tool_use_id":"toolu_open"')).toBe(1);
    using folder = fixtureFolder();
    const again = await importOne(store, folder.write("again.jsonl", Buffer.from(text, "latin1")));
    const [before] = sent(await contextOf(store, source));
    const [after] = sent(await contextOf(store, again));
    expect(after?.[0]).toBe(before?.[0]);
  });

  it("b10 and b11 are valid for every provider, and nothing is twice", async () => {
    const partial = await readCase("reports/b10-ai-sdk-partial.json");
    for (const [text] of sent(partial.context))
      expect([count(text, "Let me look"), count(text, madeUp), count(text, "Bonn")]).toEqual([1, 1, 1]);
    const duplicates = await readCase("reports/b11-agents-duplicates.json");
    for (const [text, repairs] of sent(duplicates.context)) {
      expect([count(text, "Sunny"), count(text, "get_weather")]).toEqual([1, expect.any(Number) as number]);
      expect(repairs).toEqual(expect.arrayContaining(["duplicate-call", "duplicate-result"]));
    }
  });

  it("b12-gemini makes one session, and the empty files fail nothing", async () => {
    await using store = createMemoryStore();
    const sources = await importAll(store, join(casesRoot, "reports/b12-gemini"));
    expect(sources.map(({ state, error }) => [state, error])).toEqual([
      ["imported", null],
      ["skipped", null],
      ["skipped", null],
      ["skipped", null],
    ]);
    const { sessions } = await store.list();
    expect(sessions).toHaveLength(1);
    expect(wordsOf(await contextOf(store, sources[0]!))).toEqual(["Fix the bug", "Fixed."]);
  });

  it("b14 keeps the order of the file, whatever the times say", async () => {
    const { words, context } = await readCase("reports/b14-same-and-earlier-times.jsonl");
    expect(words).toEqual(["First", "One", "Second", "?toolu_14", "=toolu_14 result", "Two"]);
    sent(context);
  });

  it("b17 is valid for every provider with both replies", async () => {
    const { context } = await readCase("reports/b17-two-replies-in-a-row.jsonl");
    for (const [text] of sent(context)) expect([count(text, "half"), count(text, "whole")]).toEqual([1, 1]);
  });

  it("b18 leaves signed thinking behind a compaction out, reported", async () => {
    const { context } = await readCase("reports/b18-thinking-after-compaction.jsonl");
    for (const [text, repairs] of sent(context))
      expect([text.includes("c2ln"), repairs.includes("thinking-removed")]).toEqual([false, true]);
  });

  it("b19-goose joins 1,260 parts of thinking into one", async () => {
    const { context } = await readCase("reports/b19-goose/sessions.db");
    const thinking = context.messages.flatMap(({ content }) => content.filter(({ type }) => type === "thinking"));
    expect(thinking).toHaveLength(1);
    for (const [, repairs] of sent(context)) expect(repairs.length).toBeLessThan(10);
  });

  it("b20 shows the text of arguments that are not JSON, and a repair names it", async () => {
    const { context } = await readCase("reports/b20-codex-arguments-not-json.jsonl");
    expect(JSON.stringify(context.messages)).toContain("[REDACTED len=153]");
    for (const [text, repairs] of sent(context))
      expect(text.includes("[REDACTED len=153]") || repairs.includes("arguments-removed")).toBe(true);
  });

  it("b21-summary has the title that stands in the other file", async () => {
    await using store = createMemoryStore();
    await importAll(store, join(casesRoot, "reports/b21-summary"));
    const { sessions } = await store.list();
    const titles = Object.fromEntries(sessions.map(({ sessionId, entry }) => [sessionId.slice(-2), entry.title]));
    expect(titles["21"]).toBe("Fix the login bug");
    expect(titles["22"]).not.toBe("Fix the login bug");
  });

  it("b22-tree names the killed reply that it leaves", async () => {
    const tree = join(casesRoot, "reports/b22-tree");
    await using store = createMemoryStore();
    const source = await importOne(store, tree);
    const words = wordsOf(await contextOf(store, source));
    const isNamed = source.findings.some(({ code, message }) => code === "SOURCE_UNREAD" && message.includes("msg_2"));
    expect(words.some((one) => one.includes("UNFINISHED-WORDS")) || isNamed).toBe(true);
  });
});
