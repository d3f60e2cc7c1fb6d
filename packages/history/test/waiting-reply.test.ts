import { throughlineDraft } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { buildContext, createHistory } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { assistant, call, result, storedRecords, text, user, type RecordSketch } from "./stored-records.ts";

const targets = [...historyTargets.values()].map((target) => [target.name, target] as const);

const mark = (state: string, turnId = "turn1"): RecordSketch => throughlineDraft("turn", { turnId, state });
const approval = (callId: string, decision: string, turnId = "turn1"): RecordSketch =>
  throughlineDraft("approval", { turnId, callId, tool: "read", decision });
const asking = (...ids: readonly string[]): RecordSketch =>
  assistant([text("I ask first."), ...ids.map((id) => call(id))], { stopReason: "toolUse" });

const begun = [user("hi"), assistant("hello"), user("pay back"), mark("open")];
const waiting = [...begun, asking("t1", "t2"), result("t2"), approval("t1", "wait"), mark("waiting")];
const askedTwice = [...begun, asking("t1", "t2"), approval("t1", "wait"), approval("t2", "wait"), mark("waiting")];

/** The newest reply waits at the end of each of these logs. */
const waits: readonly (readonly [name: string, sketches: readonly RecordSketch[]])[] = [
  ["after the turn has ended with the wait", waiting],
  ["after a decision outside of a turn, which ran no tool", [...waiting, approval("t1", "once")]],
  [
    "while a turn resumes with a part of the decisions",
    [...askedTwice, mark("open", "turn2"), approval("t1", "once", "turn2"), result("t1")],
  ],
  [
    "after the turn that resumed was interrupted",
    [...askedTwice, mark("open", "turn2"), approval("t1", "no", "turn2"), mark("interrupted", "turn2")],
  ],
  [
    "when its parts are records of their own",
    [...begun, assistant([text("One"), call("t1")], { responseId: "m1" })].concat([
      assistant([call("t2")], { responseId: "m1" }),
      result("t2"),
      approval("t1", "wait"),
      mark("waiting"),
    ]),
  ],
];

/** The newest reply does not wait, and is sent. */
const sent: readonly (readonly [name: string, sketches: readonly RecordSketch[]])[] = [
  ["when the call has its result", [...waiting, mark("open", "turn2"), approval("t1", "once", "turn2"), result("t1")]],
  ["while an approved call runs", [...waiting, mark("open", "turn2"), approval("t1", "once", "turn2")]],
  ["when an earlier turn waited", [...waiting, result("t1"), assistant("done"), user("more"), asking("t3")]],
  ["when another program went on with a message", [...waiting, user("never mind")]],
  ["when a turn was killed while its tool ran", [...begun, asking("t1"), approval("t1", "once")]],
];

describe.each(targets)("a reply with a waiting call, for %s", (_name, target) => {
  it.each(waits)("is not sent, and neither is a made-up result: %s", (_case, sketches) => {
    const context = buildContext(storedRecords(sketches));
    const rendering = target.render(context);
    expect(target.validate(rendering.messages, context.model?.modelId ?? null)).toEqual([]);
    expect(rendering.messages).toEqual(target.render(buildContext(storedRecords(begun))).messages);
    const rules = new Set(rendering.repairs.map(({ rule }) => rule));
    expect([...rules].filter((rule) => !["waiting-reply-left-out", "result-of-dropped-turn"].includes(rule))).toEqual(
      [],
    );
    expect(rules).toContain("waiting-reply-left-out");
  });

  it.each(sent)("is sent %s", (_case, sketches) => {
    const context = buildContext(storedRecords(sketches));
    const { messages, repairs } = target.render(context);
    expect(target.validate(messages, context.model?.modelId ?? null)).toEqual([]);
    expect(JSON.stringify(messages)).toContain("I ask first.");
    expect(repairs.map(({ rule }) => rule)).not.toContain("waiting-reply-left-out");
  });

  it.each([...waits, ...sent])("is the same in a history that grows: %s", (_case, sketches) => {
    const records = storedRecords(sketches);
    const history = createHistory(target);
    for (const [index, record] of records.entries()) {
      history.append([record]);
      const context = buildContext(records.slice(0, index + 1));
      expect(history.context()).toEqual({ ...context, cut: null, truncations: [] });
      expect(history.render()).toEqual(target.render(context));
    }
  });
});

describe("a context whose newest reply waits", () => {
  it("keeps the reply and its results, marked as waiting", () => {
    const { messages } = buildContext(storedRecords(waiting));
    expect(messages.slice(-2)).toMatchObject([{ role: "assistant", isWaiting: true }, { role: "toolResult" }]);
  });
});
