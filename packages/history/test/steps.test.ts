import process from "node:process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { createHistory } from "@throughline/history/incremental";
import { historyTargets } from "@throughline/history/targets";
import { storedRecords, type RecordSketch } from "./stored-records.ts";

/** Logs of one run; a longer one is asked for by hand. */
const numRuns = Number(process.env["THROUGHLINE_RUNS"] ?? 150);

const model = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" };
const said = (message: object): RecordSketch => ({ type: "message", message });
/** Mostly new ones; some that were used before. */
const oftenNew = fc.oneof({ weight: 8, arbitrary: fc.noBias(fc.nat()) }, { weight: 1, arbitrary: fc.nat({ max: 4 }) });
const seldom = (odds: number): fc.Arbitrary<boolean> => fc.nat({ max: odds }).map((value) => value === 0);

/** A reply and its results as agents write them, and one thing in a few that is not as it should be. */
const step: fc.Arbitrary<RecordSketch[]> = fc
  .record({
    calls: fc.array(oftenNew, { maxLength: 3 }),
    responseId: fc.option(oftenNew, { nil: undefined }),
    oddities: fc.record({
      stopReason: fc.oneof(
        { weight: 9, arbitrary: fc.constant("toolUse") },
        fc.constantFrom("aborted", "length", null),
      ),
      thinks: fc.nat({ max: 5 }),
      isFragment: seldom(12),
      isReversed: seldom(4),
      isCut: seldom(8),
      isTwice: seldom(10),
      name: fc.constantFrom("read", "read", "read", "weird name!"),
      path: fc.constantFrom("a", "a", "b", "\ud800"),
      result: fc.constantFrom("found", "found", "found", " ", "half \udc00"),
      text: fc.constantFrom("words", "words", "", "\n", "more \ud800"),
    }),
  })
  .map(({ calls, responseId, oddities }) => {
    const { stopReason, thinks, isFragment, isReversed, isCut, isTwice, name, path, result, text } = oddities;
    const thinking = { type: "thinking", thinking: "so", thinkingSignature: "c2ln" };
    const asked = calls.map((id) => ({ type: "toolCall", id: `t${id}`, name, arguments: { path } }));
    const reply = said({
      role: "assistant",
      content: [
        ...(thinks === 0 ? [thinking] : []),
        { type: "text", text },
        ...asked,
        ...(thinks === 1 ? [thinking] : []),
      ],
      ...model,
      stopReason,
      ...(responseId === undefined ? {} : { responseId: `m${responseId}` }),
      ...(isFragment ? { fragment: true } : {}),
    });
    const results = calls.map((id) =>
      said({ role: "toolResult", toolCallId: `t${id}`, toolName: name, content: [{ type: "text", text: result }] }),
    );
    const came = (isReversed ? results.toReversed() : results).slice(isCut ? 1 : 0);
    return [reply, ...came, ...(isTwice ? came.slice(0, 1) : [])];
  });

const between: fc.Arbitrary<RecordSketch[]> = fc
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
  .map((sketch) => [sketch]);

const nearlyPlainLog = fc
  .array(fc.oneof({ weight: 4, arbitrary: step }, { weight: 3, arbitrary: between }), { minLength: 2, maxLength: 14 })
  .map((parts) => storedRecords([said({ role: "user", content: "go" }), ...parts.flat()]));

describe.each([...historyTargets.keys()])("steps in which nothing needs a repair, for %s", (name) => {
  const target = historyTargets.get(name);
  if (target === undefined) throw new Error(name);

  it("read at once as they do record by record, by way of every repair", () => {
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
      { numRuns },
    );
  });
});
