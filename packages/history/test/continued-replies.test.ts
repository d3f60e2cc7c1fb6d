import { throughlineDraft } from "@throughline/core/internal";
import type { StoredRecord } from "@throughline/core";
import { describe, expect, it } from "vitest";
import { buildContext, createHistory, type HistoryTarget } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { assistant, call, compaction, result, storedRecords, text, user, type RecordSketch } from "./stored-records.ts";

const targets = [...historyTargets.values()].map((target) => [target.name, target] as const);
const cut = "The first half of the answer ends here";
const asking = "Write the rest.";
const thinking = (thought: string, thinkingSignature: string): Readonly<Record<string, unknown>> => ({
  type: "thinking",
  thinking: thought,
  thinkingSignature,
});
const goOn = (fields: Partial<RecordSketch> = {}): RecordSketch => ({
  type: "message",
  message: { role: "user", content: asking, source: "continue" },
  ...fields,
});
const aborted = (content: unknown, more: Readonly<Record<string, unknown>> = {}): RecordSketch =>
  assistant(content, { stopReason: "aborted", recovered: true, ...more });

const rendered = (target: HistoryTarget, sketches: readonly RecordSketch[]) =>
  target.render(buildContext(storedRecords(sketches)));
const sentText = (target: HistoryTarget, sketches: readonly RecordSketch[]): string =>
  JSON.stringify(rendered(target, sketches).messages);

/** Everything that may surround a reply that broke off. */
const logs: readonly (readonly [name: string, sketches: readonly RecordSketch[]])[] = [
  ["after a question", [user("hi"), aborted([text(cut)]), goOn(), assistant([text("and here is the rest")])]],
  [
    "after tool results",
    [user("hi"), assistant([text("look"), call("t1")], { stopReason: "toolUse" }), result("t1"), aborted(cut), goOn()],
  ],
  [
    "with thinking, half a call and white space at the end",
    [user("hi"), aborted([thinking("hm", "sig"), text(cut), call("t2"), text(" \n\t")]), goOn(), result("t2")],
  ],
  ["twice in a row", [user("hi"), aborted(cut), goOn(), aborted([text("more")]), goOn(), assistant("end")]],
  [
    "with a signed text of another API",
    [user("hi"), aborted([{ ...text(cut), textSignature: "msg_1" }], { api: "openai-responses" }), goOn()],
  ],
  ["as the first message", [aborted(cut), goOn()]],
];

describe.each(targets)("a reply that broke off and is asked to be continued, for %s", (_name, target) => {
  it.each(logs)("%s: is sent, and valid wherever the log is cut", (_log, sketches) => {
    expect(sentText(target, sketches)).toContain(cut);
    const records = storedRecords(sketches);
    const history = createHistory(target);
    for (const [index, record] of records.entries()) {
      history.append([record]);
      const context = buildContext(records.slice(0, index + 1));
      const { messages } = history.render();
      expect(messages).toEqual(target.render(context).messages);
      // A log whose only record is left out has nothing to send.
      if (messages.length === 0) continue;
      expect(target.validate(messages, context.model?.modelId ?? null), `after ${index + 1} records`).toEqual([]);
    }
  });

  it("is not sent while nothing asks for it, nor when anything stands between", () => {
    const others: readonly (readonly RecordSketch[])[] = [
      [user("hi"), aborted(cut)],
      [user("hi"), aborted(cut), user("never mind")],
      [user("hi"), aborted(cut), user("never mind"), goOn()],
      [user("hi"), aborted(cut), { type: "model_change", provider: "google", modelId: "gemini-3-pro" }, goOn()],
      [user("hi"), assistant(cut, { stopReason: "error" }), goOn()],
      [user("hi"), aborted(cut), goOn({ parentId: "r1" })],
      [user("hi"), aborted(cut), { type: "message", message: { role: "user", content: asking, source: "flush" } }],
    ];
    for (const sketches of others) expect(sentText(target, sketches), JSON.stringify(sketches)).not.toContain(cut);
  });

  it("is sent as its text alone, and says what was left out", () => {
    const parts = [thinking("a thought", "sig"), text(`${cut}  \n`), call("t2"), text("  ")];
    const { messages, repairs } = rendered(target, [user("hi"), aborted(parts), goOn()]);
    const sent = JSON.stringify(messages);
    expect(sent).toContain(`${cut}"`);
    expect(sent).not.toMatch(/a thought|t2/);
    expect(repairs).toEqual(
      expect.arrayContaining([expect.objectContaining({ rule: "continued-reply-cut", recordId: "r2" })]),
    );
    expect(repairs.map(({ rule }) => rule)).not.toContain("failed-turn-dropped");
  });

  it("without text is left out like every aborted reply", () => {
    for (const content of [[], "", " \n", [thinking("hm", "sig")], [call("t1")]]) {
      const { messages, repairs } = rendered(target, [user("hi"), aborted(content), goOn()]);
      expect(JSON.stringify(messages)).toContain(asking);
      expect(repairs.map(({ rule }) => rule)).toContain("failed-turn-dropped");
      expect(target.validate(messages, null)).toEqual([]);
    }
  });

  it("follows side records that hang between, edits, redactions and compactions", () => {
    const aside = throughlineDraft("note", { kind: "x" });
    expect(sentText(target, [user("hi"), aborted(cut), aside, goOn()])).toContain(cut);
    const edited = { type: "context_edit", targetId: "r2", replacement: { content: "as it was edited" } };
    expect(sentText(target, [user("hi"), aborted(cut), goOn(), edited])).toContain("as it was edited");
    for (const targetId of ["r2", "r3"]) {
      const removed = { type: "context_edit", targetId, replacement: null };
      expect(sentText(target, [user("hi"), aborted(cut), goOn(), removed])).not.toContain(cut);
    }
    const tombstone = throughlineDraft("redaction", { originalType: "message", redactedAtMs: 1, side: false });
    expect(sentText(target, [user("hi"), aborted(cut), tombstone])).not.toContain(cut);
    expect(sentText(target, [user("hi"), aborted(cut), goOn(), compaction("r3")])).not.toContain(cut);
    expect(sentText(target, [user("hi"), aborted(cut), goOn(), compaction("r2")])).toContain(cut);
  });
});

describe("a derived record", () => {
  const derived = (index: number): RecordSketch => ({
    ...user("two"),
    id: `u1~d${index}`,
    sourceFormat: "claude-code",
    derivedFrom: { id: "u1", index },
  });

  it("is part of the context; a missing first record is a finding, once for each, and nothing is lost", () => {
    const whole = storedRecords([{ ...user("one"), id: "u1", sourceFormat: "claude-code" }, derived(1)]);
    expect(buildContext(whole)).toMatchObject({ recordsInContext: 2, findings: [] });
    const torn = storedRecords([user("zero"), derived(1), derived(2)]);
    const { messages, findings } = buildContext(torn);
    expect(messages).toHaveLength(3);
    expect(findings.map(({ code, recordId }) => [code, recordId])).toEqual([
      ["ORIGIN_MISSING", "u1~d1"],
      ["ORIGIN_MISSING", "u1~d2"],
    ]);
    const history = createHistory("anthropic");
    for (const record of torn) history.append([record]);
    expect(history.context().findings).toEqual(findings);
  });

  it("of a window may have its first record before it", () => {
    expect(buildContext(storedRecords([derived(1)], 9)).findings.map(({ code }) => code)).not.toContain(
      "ORIGIN_MISSING",
    );
  });

  it("is looked for once, however many have lost theirs", { tags: ["slow"], timeout: 60_000 }, () => {
    const lost = Array.from({ length: 30_000 }, (_, at): RecordSketch => ({
      ...user("x"),
      id: `u${at}~d1`,
      derivedFrom: { id: `u${at}`, index: 1 },
    }));
    const records: readonly StoredRecord[] = storedRecords(lost);
    expect(buildContext(records).findings).toHaveLength(lost.length);
  });
});
