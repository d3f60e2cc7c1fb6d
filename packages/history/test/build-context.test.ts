import { throughlineDraft } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { buildContext, type Context } from "@throughline/history";
import { assistant, compaction, result, storedRecords, text, user, type RecordSketch } from "./stored-records.ts";

function contextOf(...sketches: readonly RecordSketch[]): Context {
  return buildContext(storedRecords(sketches));
}

/** `role:text` of each message, text shortened to its blocks' texts. */
function told(context: Context): string[] {
  return context.messages.map((message) => {
    const words = message.content.map((block) => (block.type === "text" ? block.text : block.type)).join("+");
    return `${message.role}:${words}`;
  });
}

const codes = (context: Context): string[] => context.findings.map((finding) => finding.code);

describe("a context after a compaction", () => {
  const talk = [
    user("one", { id: "zz" }),
    assistant("two", {}, { id: "aa" }),
    user("three", { id: "mm" }),
    assistant("four", {}, { id: "bb" }),
  ];

  it("is the summary, the kept records and the later ones, by position and not by id", () => {
    const context = contextOf(...talk, compaction("mm", "sum", { id: "00" }), user("five"));
    expect(told(context)).toEqual(["compactionSummary:sum", "user:three", "assistant:four", "user:five"]);
    expect(context.summaryId).toBe("00");
    expect(context.omitted).toEqual([{ fromSeq: 1, toSeq: 2, reason: "summarized" }]);
    expect(context.messages.map((message) => message.seq)).toEqual([5, 3, 4, 6]);
  });

  it("keeps nothing when the compaction names itself", () => {
    expect(told(contextOf(...talk, compaction("00", "sum", { id: "00" }), user("five")))).toEqual([
      "compactionSummary:sum",
      "user:five",
    ]);
  });

  it("uses the newest summary only, also when older ones lie in the kept part", () => {
    const context = contextOf(...talk, compaction("mm", "old"), user("five"), compaction("mm", "new"), user("six"));
    expect(told(context)).toEqual(["compactionSummary:new", "user:three", "assistant:four", "user:five", "user:six"]);
  });

  it("keeps the newest turns when the first kept record is nowhere, where others keep nothing", () => {
    const context = contextOf(...talk, compaction("gone", "sum"), user("five"));
    expect(told(context)).toEqual([
      "compactionSummary:sum",
      "user:one",
      "assistant:two",
      "user:three",
      "assistant:four",
      "user:five",
    ]);
    expect(codes(context)).toEqual(["COMPACTION_DANGLING"]);
  });

  it("keeps whole turns up to a limit then, and the newest turn whatever its size", () => {
    const long = "x".repeat(60_000);
    const two = contextOf(user(`1${long}`), assistant("a"), user(`2${long}`), assistant("b"), compaction("gone"));
    expect(two.messages.map((message) => message.seq)).toEqual([5, 3, 4]);
    const one = contextOf(user("small"), assistant("a"), user(long + long), assistant("b"), compaction("gone"));
    expect(one.messages.map((message) => message.seq)).toEqual([5, 3, 4]);
  });

  it("never goes past an earlier compaction for a dangling one", () => {
    const context = contextOf(
      user("one"),
      compaction("r1", "old"),
      assistant("two"),
      user("three"),
      compaction("gone", "new"),
    );
    expect(told(context)).toEqual(["compactionSummary:new", "user:three"]);
  });

  it("takes a first kept id on another branch for dangling, and one of a side record for its place", () => {
    const label = { type: "label", id: "l", targetId: "aa" };
    const context = contextOf(
      user("one"),
      assistant("two"),
      label,
      user("three", { parentId: "r2" }),
      compaction("l", "sum"),
    );
    expect(told(context)).toEqual(["compactionSummary:sum", "user:three"]);
    expect(codes(context)).toEqual([]);
    const other = contextOf(user("one"), user("off"), user("on", { parentId: "r1" }), compaction("r2", "sum"));
    expect(codes(other)).toEqual(["COMPACTION_DANGLING"]);
  });

  it("shows a better summary as soon as one is written, by the id it betters", () => {
    const note = (summaryId: string, summary: string): RecordSketch =>
      throughlineDraft("note", { kind: "summary-superseded", summaryId, summary });
    const sketches = [
      ...talk,
      compaction("mm", "stub", { id: "00" }),
      user("five"),
      note("00", "better"),
      note("other", "no"),
      user("six"),
    ];
    expect(told(contextOf(...sketches))[0]).toBe("compactionSummary:better");
    expect(told(contextOf(...sketches, note("00", " ")))[0]).toBe("compactionSummary:better");
    // What was said after the old summary and before the better one followed on other words.
    const { messages } = contextOf(...sketches);
    expect(messages.map((message) => message.isPrefixChanged)).toEqual([false, true, true, true, false]);
  });

  it("skips a compaction that cannot be read", () => {
    const context = contextOf(...talk, { type: "compaction", firstKeptEntryId: "mm" });
    expect(context.messages).toHaveLength(4);
    expect(codes(context)).toEqual(["RECORD_INVALID"]);
  });
});

describe("a reset", () => {
  it("begins an empty window, or one with the talk it keeps", () => {
    const before = [user("one"), { type: "custom_message", customType: "x", content: "note" }, assistant("two")];
    expect(told(contextOf(...before, { type: "reset", reason: "new" }, user("three")))).toEqual(["user:three"]);
    const keeping = contextOf(...before, { type: "reset", reason: "daily", firstKeptEntryId: "r1" }, user("three"));
    expect(told(keeping)).toEqual(["user:one", "assistant:two", "user:three"]);
    expect(keeping.omitted).toEqual([{ fromSeq: 2, toSeq: 2, reason: "reset" }]);
  });

  it("makes an older compaction void", () => {
    const context = contextOf(user("one"), compaction("r1"), { type: "reset", reason: "new" }, user("two"));
    expect(told(context)).toEqual(["user:two"]);
    expect(context.summaryId).toBeNull();
  });
});

describe("what records contribute", () => {
  it("takes messages of every kind, and nothing from settings, labels and empty branch summaries", () => {
    const context = contextOf(
      { type: "session", id: "header:x", parentId: null, version: 3 },
      { type: "model_change", provider: "anthropic", modelId: "claude" },
      user("hi"),
      { type: "branch_summary", fromId: "r3", summary: "went elsewhere" },
      { type: "branch_summary", fromId: "r3", summary: "" },
      { type: "custom_message", customType: "note", content: [text("fyi")] },
      { type: "message", message: { role: "bashExecution", command: "ls", output: "a.txt\n", exitCode: 2 } },
      { type: "custom", customType: "state", data: {} },
      { type: "something_new", data: {} },
    );
    expect(told(context)).toEqual([
      "user:hi",
      "branchSummary:went elsewhere",
      "custom:fyi",
      "bashExecution:Ran `ls`\n```\na.txt\n\n```\n\nCommand exited with code 2",
    ]);
    expect(context.recordsInContext).toBe(4);
  });

  it("leaves out what is excluded and what cannot be read, and says so", () => {
    const context = contextOf(
      { type: "message", message: { role: "bashExecution", command: "ls", output: "", excludeFromContext: true } },
      { type: "message", message: { role: "user" } },
      user("hi"),
    );
    expect(told(context)).toEqual(["user:hi"]);
    expect(codes(context)).toEqual(["RECORD_INVALID"]);
    expect(context.omitted).toEqual([
      { fromSeq: 1, toSeq: 1, reason: "excluded" },
      { fromSeq: 2, toSeq: 2, reason: "invalid" },
    ]);
  });

  it("takes nothing from a side record, also where the branch leads through it", () => {
    expect(
      told(contextOf(user("one"), user("aside", { id: "s", appendMode: "side" }), user("two", { parentId: "s" }))),
    ).toEqual(["user:one", "user:two"]);
  });

  it("puts a marker where a message was redacted", () => {
    const tombstone = throughlineDraft("redaction", {
      reason: "asked",
      redactedAtMs: 9e12,
      originalType: "message",
      originalBytes: 9,
      side: false,
    });
    const context = contextOf(user("one"), tombstone, assistant("three"));
    expect(context.messages.map((message) => message.role)).toEqual(["user", "redacted", "assistant"]);
    expect(context.messages[2]?.isPrefixChanged).toBe(true);
  });

  it("shows other branches as left out", () => {
    const context = contextOf(user("one"), assistant("off"), user("off too"), assistant("on", {}, { parentId: "r1" }));
    expect(told(context)).toEqual(["user:one", "assistant:on"]);
    expect(context.omitted).toEqual([{ fromSeq: 2, toSeq: 3, reason: "other-branch" }]);
  });

  it("follows the model and the thinking level along the branch", () => {
    const context = contextOf(
      { type: "thinking_level_change", thinkingLevel: "high" },
      { type: "model_change", provider: "p", modelId: "one" },
      assistant("x", { provider: "q", model: "two" }),
      { type: "thinking_level_change", thinkingLevel: "low", parentId: "r1" },
    );
    expect(context.model).toBeNull();
    expect(context.thinkingLevel).toBe("low");
    expect(contextOf(assistant("x", { provider: "q", model: "two" })).model).toEqual({ provider: "q", modelId: "two" });
    expect(contextOf(user("x")).thinkingLevel).toBe("off");
  });
});

describe("edits", () => {
  const ours = (targetId: string, replacement: unknown): RecordSketch =>
    throughlineDraft("edit", { targetId, replacement });
  const pis = (targetId: string, replacement: unknown): RecordSketch => ({
    type: "context_edit",
    targetId,
    replacement,
  });

  it.each([
    ["ours", ours],
    ["pi's", pis],
  ])("%s: the last one on the branch counts, null leaves the record out", (_name, edit) => {
    const talk = [user("one"), assistant("two"), result("t", "long")];
    expect(told(contextOf(...talk, edit("r3", { content: "a" }), edit("r3", { content: [text("b")] })))[2]).toBe(
      "toolResult:b",
    );
    const without = contextOf(...talk, edit("r2", null));
    expect(told(without)).toEqual(["user:one", "toolResult:long"]);
    expect(without.omitted).toEqual([{ fromSeq: 2, toSeq: 2, reason: "edited" }]);
  });

  it("change a summary too, unless a better one came later", () => {
    const sum = compaction("c", "old", { id: "c" });
    const better = throughlineDraft("note", { kind: "summary-superseded", summaryId: "c", summary: "better" });
    const edit = pis("c", { content: [text("edited")] });
    expect(told(contextOf(user("one"), sum, edit))).toEqual(["compactionSummary:edited"]);
    expect(told(contextOf(user("one"), sum, better, edit))).toEqual(["compactionSummary:edited"]);
    expect(told(contextOf(user("one"), sum, edit, better))).toEqual(["compactionSummary:better"]);
    expect(told(contextOf(user("one"), sum, pis("c", null), user("two")))).toEqual(["user:two"]);
  });

  it("says when an edit fits nothing, and shows the record as it was", () => {
    const context = contextOf(user("one"), pis("r1", { content: 7 }), pis("r1", "text"));
    expect(told(context)).toEqual(["user:one"]);
    expect(codes(context)).toEqual(["RECORD_INVALID", "RECORD_INVALID"]);
  });

  it("marks what was written before the edit and after its target as changed underneath", () => {
    const context = contextOf(user("one"), assistant("two"), pis("r1", { content: "uno" }), assistant("three"));
    expect(context.messages.map((message) => message.isPrefixChanged)).toEqual([false, true, false]);
  });
});

describe("records of a newer version", () => {
  const newer: RecordSketch = { type: "custom", customType: "throughline.edit", v: 99, critical: true, data: {} };
  const unknown: RecordSketch = { type: "custom", customType: "throughline.future", v: 1, critical: true, data: {} };

  it("refuse a context when they may change it", () => {
    expect(() => contextOf(user("a"), newer)).toThrow(expect.objectContaining({ code: "RECORD_FROM_NEWER_VERSION" }));
    expect(() => contextOf(user("a"), unknown)).toThrow(expect.objectContaining({ code: "RECORD_FROM_NEWER_VERSION" }));
  });

  it("do not when they lie on another branch or are not critical", () => {
    expect(told(contextOf(user("a"), newer, user("b", { parentId: "r1" })))).toEqual(["user:a", "user:b"]);
    expect(told(contextOf(user("a"), { ...unknown, critical: false }))).toEqual(["user:a"]);
  });
});
