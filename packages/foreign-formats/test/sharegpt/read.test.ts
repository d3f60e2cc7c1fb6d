import { readFileSync } from "node:fs";
import { foreignFormats } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { corpusFiles } from "../corpus-files.ts";
import { readUnits, refusals, talk } from "../read-units.ts";

const turn = (from: string, value: unknown): object => ({ from, value });
const conversation = [
  turn("system", "Be brief."),
  turn("human", "Weather in Oslo and Bergen?"),
  turn("function_call", '[{"name":"weather","arguments":{"city":"Oslo"}},{"name":"weather","arguments":"{}"}]'),
  turn("observation", "-3"),
  turn("observation", "4"),
  turn("gpt", "Cold, and mild."),
];
const path = "/p/data.json";

describe("a conversation of a data set", () => {
  it("is read by who speaks, and results answer calls in order", () => {
    const text = JSON.stringify({ id: "c1", conversations: conversation, tools: "[]" }, null, 1);
    const session = readUnits("sharegpt", text, path);
    expect(talk(session)).toEqual([
      "system: Be brief.",
      "user: Weather in Oslo and Bergen?",
      "assistant: ?call_4_1 ?call_4_2",
      "=call_4_1 toolResult: -3",
      "=call_4_2 toolResult: 4",
      "assistant: Cold, and mild.",
    ]);
    expect(session.reader.sessionId).toBe("c1");
    expect(session.findings).toEqual([]);
    expect(refusals(session)).toEqual([]);
  });

  it("keeps a call that is none as text, and turns of nobody aside", () => {
    const odd = [
      turn("human", "Hi"),
      turn("function_call", "search(x)"),
      turn("observation", "found"),
      turn("narrator", "Later."),
      turn("gpt", 5),
      { from: "gpt", value: "Yo", weight: 0 },
      { novelty: 1 },
    ];
    const session = readUnits("sharegpt", JSON.stringify({ conversations: odd }), path);
    expect(talk(session).filter((line) => !line.startsWith("="))).toEqual([
      "user: Hi",
      "assistant: search(x)",
      "assistant: Yo",
    ]);
    expect(session.findings.map(({ code, line }) => [code, line])).toEqual([
      ["RECORD_INVALID", 5],
      ["RECORD_INVALID", 6],
    ]);
    expect(session.records.find(({ seq }) => seq === 7)?.record["native"]).toEqual({ weight: 0 });
  });

  it.each([
    ["a list", JSON.stringify([{ conversations: conversation }, { conversations: conversation }], null, 2), "elements"],
    ["lines", `${JSON.stringify({ conversations: conversation })}\n`.repeat(2), "lines"],
    ["one alone", JSON.stringify({ conversations: conversation }, null, 2), null],
  ])("is found in %s", (_, text, sessions) => {
    const format = foreignFormats.get("sharegpt");
    const sample = { path, head: Buffer.from(text), isWhole: true };
    expect([format?.detect(sample), format?.layout(sample).sessions]).toEqual(["certain", sessions]);
  });

  it.skipIf(corpusFiles("sharegpt", ".json").length === 0)("of the corpus has every turn", () => {
    for (const file of corpusFiles("sharegpt", ".json")) {
      const all = JSON.parse(readFileSync(file, "utf8")) as readonly { readonly conversations: readonly object[] }[];
      for (const one of all) {
        const session = readUnits("sharegpt", JSON.stringify(one), path);
        expect(session.context.messages).toHaveLength(one.conversations.length);
        expect(session.findings).toEqual([]);
        expect(refusals(session)).toEqual([]);
      }
    }
  });
});
