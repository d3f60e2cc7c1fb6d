import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyChanges } from "../src/apply-changes.ts";
import type { GuardChange } from "../src/guard-change.ts";
import { findResults } from "../src/message-slots.ts";
import { leaveOutMedia } from "../src/leave-out-media.ts";
import { shortenText, shortenToHead } from "../src/shorten-text.ts";
import { bindsThinking, stripThinking } from "../src/strip-thinking.ts";
import { truncateResults } from "../src/truncate-results.ts";
import { toolTurn, wirings, type WiringName } from "./models.ts";

const lines = (count: number): string => Array.from({ length: count }, (_, index) => `line ${index}`).join("\n");

describe("shortening a text", () => {
  it("keeps head and tail at lines and says how much there was", () => {
    const text = lines(2000);
    const found = shortenText(text, 1000);
    expect(found?.text.length).toBeLessThanOrEqual(1000);
    const [head = "", tail = ""] = (found?.text ?? "").split(/\n\n\[\.\.\..*\.\.\.\]\n\n/);
    expect(found?.text).toContain(
      `[... truncated (${text.length} chars total, showing first ${head.length} and last ${tail.length}) ...]`,
    );
    expect(text.startsWith(`${head}\n`)).toBe(true);
    expect(text.endsWith(`\n${tail}`)).toBe(true);
  });

  it("writes the first document's marker when the head alone is kept", () => {
    const found = shortenToHead(lines(100), 50);
    expect(found?.text).toBe(
      `${lines(7)}\n\n[... truncated (${lines(100).length} chars total, showing first ${lines(7).length}) ...]`,
    );
  });

  it("never lengthens, never splits a character, and gives the same bytes again", () => {
    const texts = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 3000 }),
      fc.integer({ min: 0, max: 900 }).map(lines),
    );
    fc.assert(
      fc.property(texts, fc.integer({ min: 0, max: 2000 }), (text, most) => {
        const found = shortenText(text, most);
        if (found === null) return;
        expect(found.text.length).toBeLessThan(text.length);
        expect(found.text.length).toBeLessThanOrEqual(Math.max(most, 200));
        expect(found.text.isWellFormed()).toBe(text.isWellFormed());
        expect(shortenText(text, most)).toEqual(found);
      }),
    );
  });

  it("keeps stating the first length when a shortened text is shortened again", () => {
    const text = lines(5000);
    const once = shortenText(text, 8000)?.text ?? "";
    expect(shortenText(once, 900)?.text).toContain(`truncated (${text.length} chars total`);
  });
});

describe.each(Object.keys(wirings) as WiringName[])("shortening the results of %s", (name) => {
  const options = { reason: "input" as const, recordIds: [], shorten: shortenText };
  const messages = [900, 5000, 20_000].flatMap((size, number) => toolTurn(name, number, lines(size).slice(0, size)));

  it("cuts each to its share and all to theirs, the longest first", () => {
    const each = truncateResults(messages, { ...options, eachCharacters: 10_000, totalCharacters: 1e9 });
    expect(each.changes.map(({ beforeBytes }) => beforeBytes)).toEqual([20_000]);
    const all = truncateResults(messages, { ...options, eachCharacters: 1e9, totalCharacters: 9000 });
    expect(all.changes.map(({ beforeBytes }) => beforeBytes)).toEqual([5000, 20_000]);
    const sum = findResults(all.messages).reduce((total, { text }) => total + text.length, 0);
    expect(sum).toBeLessThanOrEqual(9000);
    expect(sum).toBeGreaterThan(8000);
  });

  it("applies what was kept to the same bytes, also after messages before have gone", () => {
    const { messages: shortened, changes } = truncateResults(messages, {
      ...options,
      eachCharacters: 2000,
      totalCharacters: 1e9,
    });
    const kept = JSON.parse(JSON.stringify(changes)) as GuardChange[];
    expect(JSON.stringify(applyChanges(messages, kept))).toBe(JSON.stringify(shortened));
    expect(applyChanges(shortened, kept)).toEqual(shortened);
    if (name === "ollama") return;
    expect(JSON.stringify(applyChanges(messages.slice(4), kept))).toBe(JSON.stringify(shortened.slice(4)));
  });

  it("applies one change after the other where a result was shortened twice", () => {
    const once = truncateResults(messages, { ...options, eachCharacters: 4000, totalCharacters: 1e9 });
    const twice = truncateResults(once.messages, { ...options, eachCharacters: 900, totalCharacters: 1e9 });
    expect(twice.changes.length).toBeGreaterThan(1);
    expect(applyChanges(messages, [...once.changes, ...twice.changes])).toEqual(twice.messages);
  });

  it("finds a result by its record where there are no call ids", () => {
    const recordIds = messages.map((_, index) => `r${index}`);
    const { messages: shortened, changes } = truncateResults(messages, {
      ...options,
      recordIds,
      eachCharacters: 2000,
      totalCharacters: 1e9,
    });
    expect(changes.map(({ recordId }) => recordId)).toEqual(["r6", "r10"]);
    expect(applyChanges(messages.slice(4), changes, recordIds.slice(4))).toEqual(shortened.slice(4));
  });

  it("leaves a change alone whose text is another now", () => {
    const { changes } = truncateResults(messages, { ...options, eachCharacters: 2000, totalCharacters: 1e9 });
    const others = [0, 1, 2].flatMap((number) => toolTurn(name, number, "short"));
    expect(applyChanges(others, changes)).toEqual(others);
  });
});

describe("leaving out and stripping", () => {
  const image = (data: string): object => ({
    type: "image",
    source: { type: "base64", media_type: "image/png", data },
  });
  const messages = [
    { role: "user", content: [image("A".repeat(5000)), { type: "text", text: "one" }] },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "so", signature: "s" },
        { type: "text", text: "two" },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: [image("B".repeat(500))] }] },
  ];

  it("takes the oldest images first, and all but the newest message's when the amount is not known", () => {
    for (const overBytes of [100, null]) {
      const { messages: left, changes } = leaveOutMedia(messages, overBytes, ["a", "b", "c"]);
      expect(changes.map(({ recordId, what }) => [recordId, what])).toEqual([["a", "media"]]);
      expect(JSON.stringify(left[0])).toMatch(/image of \d+ bytes left out/);
      expect(left[2]).toBe(messages[2]);
      expect(applyChanges(messages, changes, ["a", "b", "c"])).toEqual(left);
    }
    expect(leaveOutMedia(messages, 1e9, []).changes).toHaveLength(2);
    expect(leaveOutMedia(messages.slice(1), null, []).changes).toHaveLength(1);
  });

  it("takes an image out of Ollama's list and says so in the text", () => {
    const ollama = [{ role: "user", content: "Look.", images: ["AAAA", "BBBB"] }];
    const { messages: left } = leaveOutMedia(ollama, 1, []);
    expect(left).toEqual([
      { role: "user", content: "Look.\n[image of 4 bytes left out: the request was too large]", images: ["BBBB"] },
    ]);
  });

  it("knows the models that bind thinking to what stands before it", () => {
    const binds = (modelId: string): boolean => bindsThinking({ provider: "anthropic", modelId });
    expect(["claude-opus-5-5", "claude-fable-5-1", "claude-sonnet-6"].map(binds)).toEqual([true, true, true]);
    expect(["claude-opus-4-5-20251101", "claude-opus-5", "gpt-5.5"].map(binds)).toEqual([false, false, false]);
    expect(stripThinking(messages, 1)[1]).toEqual({ role: "assistant", content: [{ type: "text", text: "two" }] });
    expect(stripThinking(messages, 2)).toEqual(messages);
  });
});
