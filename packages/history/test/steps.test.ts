import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildContext, createHistory } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { storedRecords, type RecordSketch } from "./stored-records.ts";
import { runs } from "./test-runs.ts";

const model = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" };
const said = (message: object): RecordSketch => ({ type: "message", message });
/** Mostly null, for a new one; else one of the first of the log. */
const usedBefore = fc.option(fc.nat({ max: 5 }), { freq: 7 });
const seldom = (odds: number): fc.Arbitrary<boolean> => fc.nat({ max: odds }).map((value) => value === 0);

const nothingOdd = {
  stopReason: "toolUse" as string | null,
  thinks: "no",
  isFragment: false,
  isCut: false,
  isTwice: false,
  path: "a",
  result: "found",
  text: "words",
};

const oddities = fc.record({
  stopReason: fc.constantFrom("toolUse", "toolUse", "aborted", "length", null),
  thinks: fc.constantFrom("no", "no", "first", "last"),
  isFragment: seldom(2),
  isCut: seldom(3),
  isTwice: seldom(3),
  path: fc.constantFrom("a", "a", "a", "\ud800"),
  result: fc.constantFrom("found", "found", " ", "half \udc00"),
  text: fc.constantFrom("words", "words", "", "more \ud800"),
});

const stepSketch = fc.record({
  calls: fc.array(usedBefore, { maxLength: 3 }),
  responseId: fc.constantFrom("none", "none", "new", "new", 0, 1, 2),
  thinksFirst: seldom(3),
  isReversed: seldom(3),
  name: fc.constantFrom("read", "read", "read", "weird name!"),
  odd: fc.oneof({ weight: 5, arbitrary: fc.constant(nothingOdd) }, { weight: 1, arbitrary: oddities }),
});

/** A reply and its results as agents write them; of a few one thing is not as it should be. */
function step(
  sketch: typeof stepSketch extends fc.Arbitrary<infer Sketch> ? Sketch : never,
  nextId: () => number,
): RecordSketch[] {
  const { calls, responseId, thinksFirst, isReversed, name, odd } = sketch;
  const thinking = { type: "thinking", thinking: "so", thinkingSignature: "c2ln" };
  const ids = calls.map((id) => `t${id ?? nextId()}`);
  const asked = ids.map((id) => ({ type: "toolCall", id, name, arguments: { path: odd.path } }));
  const before = thinksFirst || odd.thinks === "first" ? [thinking] : [];
  const reply = said({
    role: "assistant",
    content: [...before, { type: "text", text: odd.text }, ...asked, ...(odd.thinks === "last" ? [thinking] : [])],
    ...model,
    stopReason: odd.stopReason,
    ...(responseId === "none" ? {} : { responseId: `m${responseId === "new" ? nextId() : responseId}` }),
    ...(odd.isFragment ? { fragment: true } : {}),
  });
  const results = ids.map((toolCallId) =>
    said({
      role: "toolResult",
      toolCallId,
      toolName: name,
      content: [{ type: "text", text: `${odd.result}${toolCallId}` }],
    }),
  );
  const came = (isReversed ? results.toReversed() : results).slice(odd.isCut ? 1 : 0);
  return [reply, ...came, ...(odd.isTwice ? came.slice(0, 1) : [])];
}

const between = fc
  .constantFrom<RecordSketch>(
    said({ role: "user", content: "go on" }),
    said({ role: "user", content: "go on" }),
    said({ role: "user", content: " " }),
    said({ role: "user", content: [{ type: "image", data: "aWs=", mimeType: "image/png" }] }),
    said({ role: "system", content: "Be brief." }),
    said({ role: "narrator", content: "Nobody hears this." }),
    said({ role: "assistant", content: "Done.", ...model, stopReason: "stop" }),
    said({
      role: "assistant",
      content: [{ type: "toolCall", id: "t1", name: "read", arguments: { path: "a" } }],
      ...model,
    }),
    said({ role: "toolResult", toolCallId: "t1", content: "late" }),
    said({ role: "toolResult", toolCallId: "t99", content: "nobody asked" }),
  )
  .map((sketch) => (): RecordSketch[] => [sketch]);

const part = fc.oneof(
  { weight: 5, arbitrary: stepSketch.map((sketch) => (nextId: () => number) => step(sketch, nextId)) },
  { weight: 2, arbitrary: between },
);

const nearlyPlainLog = fc.array(part, { minLength: 2, maxLength: 14 }).map((parts) => {
  let lastId = -1;
  const nextId = (): number => ++lastId;
  return storedRecords([said({ role: "user", content: "go" }), ...parts.flatMap((sketches) => sketches(nextId))]);
});

describe.each([...historyTargets.keys()])("steps in which nothing needs a repair, for %s", (name) => {
  const target = historyTargets.get(name);
  if (target === undefined) throw new Error(name);

  it("read at once as they do record by record, by way of every repair", { tags: ["slow"] }, () => {
    const trailing = fc.constantFrom("keep", "remove", "continue");
    fc.assert(
      fc.property(
        nearlyPlainLog,
        trailing,
        fc.constantFrom("drop", "text"),
        (records, trailingAssistant, orphanResults) => {
          const options = { trailingAssistant, orphanResults };
          const slow = createHistory(target, options);
          for (const record of records) {
            slow.append([record]);
            slow.context();
          }
          const expected = slow.render();
          expect(target.render(buildContext(records), options)).toEqual(expected);
          const opened = createHistory(target, options);
          opened.append(records.slice(0, -3));
          opened.render();
          for (const record of records.slice(-3)) {
            opened.append([record]);
            opened.render();
          }
          expect(opened.render()).toEqual(expected);
        },
      ),
      runs(150),
    );
  });
});
