import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { renderText } from "../src/render-text.ts";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import { assistant, call, result, storedRecords, text, user, type RecordSketch } from "./stored-records.ts";

const count = 20_000;
const many = (make: (index: number) => RecordSketch, length = count): RecordSketch[] =>
  Array.from({ length }, (_, index) => make(index));

const calls = Array.from({ length: count }, (_, index) => call("x", { index }));

/** Logs on which looking through all calls of an id, or all parts of a reply, again and again would take minutes. */
const logs: readonly (readonly [name: string, sketches: readonly RecordSketch[]])[] = [
  ["one id, each call answered", many((index) => (index % 2 === 0 ? assistant([call("x", { index })]) : result("x")))],
  ["one call again and again", many((index) => (index % 2 === 0 ? assistant([call("x")]) : result("x")))],
  ["one id, never answered", many((index) => assistant([call("x", { index })], { stopReason: "toolUse" }))],
  ["one id, in parts of one reply", many((index) => assistant([call("x", { index })], { responseId: "m" }))],
  ["one id, in one reply", [assistant(calls), ...many(() => result("x"))]],
  ["results before their calls", [...many(() => result("x")), ...many((index) => assistant([call("x", { index })]))]],
  ["results only", many(() => result("x"))],
  ["one side only", many((index) => (index < count / 2 ? user("u") : assistant([text("a")])))],
];

describe("a log made to slow a rendering down", () => {
  it.each(logs)(
    "%s: is rendered in time that grows with its length",
    { tags: ["slow"], timeout: 60_000 },
    (_name, sketches) => {
      const context = buildContext(storedRecords(sketches));
      const { messages } = renderAnthropic(context);
      expect(messages.length === 0 || validateAnthropic(messages).length === 0).toBe(true);
      expect(renderText(context)).not.toBe("");
    },
  );
});
