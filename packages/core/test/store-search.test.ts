import { describe, expect, it } from "vitest";
import { findMatches, searchSnippet } from "../src/search-match.ts";
import { parseAnyOf, parseSearch, readSearchQuery } from "../src/search-plan.ts";
import { searchText } from "../src/search-text.ts";
import { searchIndexText, toolWord } from "../src/search-words.ts";
import type { SessionRecord } from "../src/record.ts";
import type { SearchQuery } from "../src/store-facets.ts";

function record(fields: object): SessionRecord {
  return { type: "message", id: "r", parentId: null, timestamp: "2026-01-02T03:04:05.006Z", ...fields };
}

function wordsOf(text: string): string {
  return searchIndexText(text).words;
}

/** The parts of the text that a query highlights; null when it does not fit. */
function shown(query: string, text: string): string[] | null {
  const ranges = findMatches(parseSearch(query), text)?.ranges;
  return ranges?.map(({ start, end }) => text.slice(start, end)) ?? null;
}

describe("the words of a text", () => {
  it.each([
    ["Hello, World!", "hello world"],
    ["parse_session_key", "parse session key"],
    ["parseSessionKey HTMLParser v2 utf8 SHA256", "parse session key html parser v2 utf8 sha256"],
    ["packages/core/src/index.ts:12", "packages core src index ts 12"],
    ["Ünï cödé ＡＢＣ", "uni code abc"],
    ["会话层", "会话 话层 层"],
    ["store会话x", "store 会话 话 x"],
    ["東京タワー", "東京 京タ タワ ワー ー"],
    ["😀 smile\u0000d", "smile d"],
    ["", ""],
    [`${"A".repeat(129)} after`, "after"],
  ])("of %j are %j", (text, words) => {
    expect(wordsOf(text)).toBe(words);
  });

  it("keep an identifier in one piece beside its parts", () => {
    expect(searchIndexText("parseKey parseKey Parse HTMLKey").names).toBe("parsekey htmlkey");
  });

  it("take time in proportion to the text", () => {
    const steps = ["aB".repeat(100_000), "a".repeat(200_000), "é".repeat(200_000), "会".repeat(100_000)];
    for (const text of steps) expect(searchIndexText(text).words.length).toBeLessThan(text.length * 4);
  });

  it("of tools are one", () => {
    expect(toolWord("mcp__Files.read-all")).toBe("mcp_files_read_all");
  });
});

describe("a search", () => {
  it.each([
    ["fox quick", "the quick brown fox", ["quick", "fox"]],
    ['"quick fox"', "the quick brown fox", null],
    ['"brown fox', "the quick brown fox", ["brown fox"]],
    ["bro*", "the quick brown fox", ["brown"]],
    ["bro", "the quick brown fox", null],
    ["session_key", "const sessionKey = 1", ["sessionKey"]],
    ["sessionkey", "const sessionKey = 1", ["sessionKey"]],
    ["sessionKey", "the sessionkey", ["sessionkey"]],
    ["core/src", "in packages/core/src/x.ts", ["core/src"]],
    ["会话", "这是会话层", ["会话"]],
    ["层", "这是会话层", ["层"]],
    ["会", "这是会话层", ["会"]],
    ["话会", "这是会话层", null],
    ["cafe", "Un CAFÉ", ["CAFÉ"]],
    ["é", "会é", ["é"]],
    ["", "anything", null],
    ["!!! -- ()", "anything", null],
  ])("for %j in %j highlights %j", (query, text, expected) => {
    expect(shown(query, text)).toEqual(expected);
  });

  it.each([
    "') OR 1=1 --",
    "a AND",
    "NEAR(a b, 2)",
    "{words names} : x",
    "^x",
    '""""',
    "a\u0000b",
    "*",
    "- + ~",
    "\ud800",
  ])("takes %j for words", (query) => {
    for (const { words } of parseSearch(query).clauses)
      for (const word of words) expect(word).toMatch(/^[\p{L}\p{N}]+$/u);
  });

  it("has limits", () => {
    expect(() => readSearchQuery({ text: "x".repeat(1001) })).toThrow(
      expect.objectContaining({ code: "INPUT_INVALID" }),
    );
    for (const limit of [0, 1001, 1.5, Number.NaN])
      expect(() => readSearchQuery({ text: "x", limit })).toThrow(expect.objectContaining({ code: "INPUT_INVALID" }));
    for (const odd of [{ state: "all" }, { sinceMs: Number.NaN }, { untilMs: "1" }, { tool: 1 }, { role: null }])
      expect(() => readSearchQuery({ text: "x", ...odd } as SearchQuery)).toThrow(
        expect.objectContaining({ code: "INPUT_INVALID" }),
      );
    expect(readSearchQuery({ text: "x" })).toMatchObject({ namespace: "", state: "any", limit: 20, toolWord: null });
  });
});

describe("a snippet", () => {
  it("shows the best place with its highlights in UTF-16 units, and no control characters", () => {
    const text = `alpha ${"😀 ".repeat(200)} alpha\u001b[31m\nbeta ${"x ".repeat(200)}`;
    const { snippet, highlights } = searchSnippet(parseSearch("beta alpha"), text);
    expect(highlights.map(([start, end]) => snippet.slice(start, end))).toEqual(["alpha", "beta"]);
    expect(snippet).not.toMatch(/\p{Cc}/u);
    expect(snippet.isWellFormed()).toBe(true);
    expect([snippet.at(0), snippet.at(-1)]).toEqual(["…", "…"]);
    expect(snippet.length).toBeLessThan(200);
  });

  it("of a short text is the text", () => {
    expect(searchSnippet(parseSearch("b"), "a b c")).toEqual({ snippet: "a b c", highlights: [[2, 3]] });
  });
});

describe("what of a record is searched", () => {
  it.each([
    [{ message: { role: "user", content: "hi" } }, { role: "user", toolNames: [], text: "hi" }],
    [
      {
        message: {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hmm" },
            { type: "text", text: "so" },
            { type: "toolCall", id: "c", name: "grep", arguments: { pattern: "x", paths: ["a", { deep: "b" }] } },
            { type: "image", data: "AAAA" },
          ],
        },
      },
      { role: "assistant", toolNames: ["grep"], text: "hmm\nso\ngrep x a b" },
    ],
    [
      { message: { role: "toolResult", toolName: "grep", content: [{ type: "text", text: "found" }], details: "no" } },
      { role: "toolResult", toolNames: ["grep"], text: "found" },
    ],
    [
      { message: { role: "bashExecution", command: "ls", output: "a" } },
      { role: "bashExecution", toolNames: ["bash"], text: "ls\na" },
    ],
    [
      { type: "compaction", summary: "so far" },
      { role: null, toolNames: [], text: "so far" },
    ],
    [
      { type: "checkpoint", checkpoint: { summary: "s", topics: ["t"] } },
      { role: null, toolNames: [], text: "s\nt" },
    ],
    [
      { type: "session_info", name: "n" },
      { role: null, toolNames: [], text: "n" },
    ],
    [{ type: "custom", customType: "throughline.redaction", data: { reason: "why" } }, null],
    [{ message: null }, null],
  ])("%j", (fields, expected) => {
    expect(searchText(record(fields))).toEqual(expected);
  });
});

describe("a search for any of some words", () => {
  it.each([
    [["compactions"], "it was compacted", ["compacted"]],
    [["missing", "fox"], "the quick brown foxes", ["foxes"]],
    [["parseSessionKey"], "the parsesessionkey", ["parsesessionkey"]],
    [["parseSessionKey"], "keys of a session", ["keys", "session"]],
    [["utf8"], "utf81", null],
    [["сообщения"], "Это сообщение", ["сообщение"]],
    [["会话层"], "这是会话", ["会话"]],
    [["层"], "这是会话层", null],
    [[], "anything", null],
    [["!!!"], "anything", null],
  ])("%j in %j marks %j", (words, text, expected) => {
    const ranges = findMatches(parseAnyOf(words), text)?.ranges;
    expect(ranges?.map(({ start, end }) => text.slice(start, end)) ?? null).toEqual(expected);
  });

  it("takes each stem once", () => {
    expect(parseAnyOf(["runs", "running", "run"]).clauses.map(({ words }) => words)).toEqual([["run"]]);
  });

  it("indexes the stems that differ from their words, in their order", () => {
    expect(searchIndexText("Compactions run; compactions ran over utf8 сообщение")).toEqual({
      words: "compactions run compactions ran over utf8 сообщение",
      names: "",
      stems: "compact compact сообщ",
    });
  });

  it("takes time in proportion to the text", () => {
    const texts = ["ing".repeat(40_000), "y".repeat(120_000), "ational ".repeat(20_000), "ё".repeat(120_000)];
    for (const text of texts) expect(searchIndexText(text).stems.length).toBeLessThan(text.length);
  });
});
