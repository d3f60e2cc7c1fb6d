import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import type { ExportFormat } from "../src/export-types.ts";
import type { ImportFormat } from "../src/import-types.ts";
import { casesRoot, contextOf, hasCases, importOne, readCase, wordsOf } from "./corpus-cases.ts";
import { exported, fixtureFolder, importAll, refOf } from "./fixture-folder.ts";

/** Files whose first item is larger than a sample, with the format that they are of. */
const large: readonly (readonly [file: string, format: ImportFormat])[] = [
  ["claude-code-bigimage.jsonl", "claude-code"],
  ["claude-code-bigtext.jsonl", "claude-code"],
  ["anthropic-ownrows.json", "anthropic"],
  ["openai-line.json", "openai"],
  ["codex-bigmeta.jsonl", "codex"],
  ["openai-pretty.json", "openai"],
  ["openai-list.json", "openai"],
  ["openai-ownrows.json", "openai"],
  ["anthropic-line.json", "anthropic"],
  ["anthropic-pretty.json", "anthropic"],
  ["anthropic-bigsystem.json", "anthropic"],
  ["copilot.jsonl", "copilot-cli"],
  ["gemini.json", "gemini"],
  ["opencode.json", "opencode"],
  ["pi.jsonl", "pi"],
];

describe.skipIf(!hasCases)("the cases of the corpus", () => {
  it.each(large)("head64k/%s is of %s, cut anywhere and whole", { timeout: 120_000 }, async (file, format) => {
    const bytes = readFileSync(join(casesRoot, "head64k", file));
    const fresh = await readCase(`head64k/${file}`);
    expect([fresh.source.format, fresh.source.error]).toEqual([format, null]);
    expect(fresh.words.length).toBeGreaterThan(1);
    const to = (format === "pi" ? "jsonl" : format) as ExportFormat;
    for (const size of [100, 1000, 40_000, 66_000, 78_279, bytes.length - 400, bytes.length - 3]) {
      if (size >= bytes.length || size <= 0) continue;
      using folder = fixtureFolder();
      await using store = createMemoryStore();
      const path = folder.write(basename(file), bytes.subarray(0, size));
      await importOne(store, path);
      folder.write(basename(file), bytes);
      const whole = await importOne(store, path);
      expect([size, whole.format, whole.error]).toEqual([size, format, null]);
      expect([size, wordsOf(await contextOf(store, whole))]).toEqual([size, fresh.words]);
      expect([size, (await exported(store, refOf(whole), to)) === bytes.toString("latin1")]).toEqual([size, true]);
    }
  });

  it.each([
    [
      "compact-result/preserved-call-result-after.jsonl",
      ["SUMMARY", "Newer question", "?", "=", "Next question", "Next answer"],
    ],
    ["compact-result/unpreserved-call-result-after.jsonl", ["SUMMARY", "Next question", "Next answer"]],
    ["dag/next-hangs-on-kept-tail.jsonl", ["SUMMARY", "KEPT-1", "KEPT-2", "KEPT-3", "After it", "Last words"]],
  ] as const)("%s has the context that the program resumes with", async (file, expected) => {
    const { words } = await readCase(file);
    const kept = file.includes("unpreserved") ? words.filter((one) => !one.startsWith("=")) : words;
    expect(
      kept.map((one, at) => one.startsWith(expected[at] ?? "nothing") || one.includes(expected[at] ?? "nothing")),
    ).toEqual(expected.map(() => true));
  });

  it("cline/tasks has the results that stand in the next message", async () => {
    const { words } = await readCase("cline/tasks/1771111111111/api_conversation_history.json");
    expect(words.some((one) => one.includes("A garden planner."))).toBe(true);
    expect(words.join("\n")).not.toContain("No result was recorded");
  });

  it("gemini-legacy grows by the elements that are new", async () => {
    using folder = fixtureFolder();
    await using store = createMemoryStore();
    const path = folder.write("session.json", readFileSync(join(casesRoot, "gemini-legacy/before.json")));
    await importOne(store, path);
    folder.write("session.json", readFileSync(join(casesRoot, "gemini-legacy/after.json")));
    expect(await importOne(store, path)).toMatchObject({ state: "grown", records: 2, error: null });
  });

  it("torn/codex.jsonl grows from a prefix that is cut in any line", { timeout: 120_000 }, async () => {
    const bytes = readFileSync(join(casesRoot, "torn/codex.jsonl"));
    const ends = [...bytes.keys()].filter((at) => bytes[at] === 0x0a);
    for (const [line, end] of ends.slice(0, 4).entries()) {
      const size = end + Math.floor(((ends[line + 1] ?? bytes.length) - end) / 2);
      using folder = fixtureFolder();
      await using store = createMemoryStore();
      const path = folder.write("rollout.jsonl", bytes.subarray(0, size));
      await importOne(store, path);
      folder.write("rollout.jsonl", bytes);
      const whole = await importOne(store, path);
      expect([line, whole.state, whole.error]).toEqual([line, "grown", null]);
      expect(wordsOf(await contextOf(store, whole))).toHaveLength(4);
      expect(await exported(store, refOf(whole), "codex")).toBe(bytes.toString("latin1"));
    }
  });

  it("codex-compaction/remote.jsonl has a finding for what only the provider can read", async () => {
    const { source } = await readCase("codex-compaction/remote.jsonl");
    expect(source.findings.map(({ code }) => code)).toContain("SOURCE_UNREAD");
  });

  it("reports/b04 keeps the thinking level that was set before a compaction", async () => {
    expect((await readCase("reports/b04-codex-images-in-compaction.jsonl")).context.thinkingLevel).toBe("high");
  });

  it("anthropic-text is read as the format that is named", async () => {
    expect((await readCase("anthropic-text/text-only.json", "anthropic")).source.format).toBe("anthropic");
  });

  it("streamjson/stream.jsonl is refused, or holds the whole exchange", async () => {
    const [source] = await importAll(createMemoryStore(), join(casesRoot, "streamjson/stream.jsonl"));
    if (source?.error === null) expect((await readCase("streamjson/stream.jsonl")).words.length).toBeGreaterThan(2);
    else expect(source?.state).toBe("refused");
  });

  it("lines/openai-message-per-line.jsonl has the call and its result", async () => {
    const { source, words } = await readCase("lines/openai-message-per-line.jsonl");
    expect(source.format).toBe("openai");
    expect(words.filter((one) => one.includes("?") || one.startsWith("=")).length).toBeGreaterThan(1);
  });

  it("reports/b22 has the killed reply, or a finding that names it", async () => {
    const { source, words } = await readCase("reports/b22-opencode-killed-reply.json");
    const isThere = words.some((one) => one.includes("UNFINISHED-WORDS"));
    expect(isThere || source.findings.length > 0).toBe(true);
  });

  it("reports/b15-cline has a finding for the range that the program leaves out", async () => {
    const { source } = await readCase("reports/b15-cline/tasks/1700001234567/api_conversation_history.json");
    expect(source.findings.map(({ code }) => code)).toContain("SOURCE_UNREAD");
  });
});
