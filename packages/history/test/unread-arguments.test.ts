import { buildContext } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import { describe, expect, it } from "vitest";
import { storedRecords } from "./stored-records.ts";

const call = { type: "toolCall", id: "call_1", name: "run", arguments: {}, partialJson: "rm -rf build" };

describe("a call whose arguments are no JSON", () => {
  const records = storedRecords([
    { type: "message", message: { role: "user", content: "Clean up." } },
    { type: "message", message: { role: "assistant", content: [call] } },
    { type: "message", message: { role: "toolResult", toolCallId: "call_1", toolName: "run", content: "ok" } },
  ]);

  it("has its text in the context", () => {
    expect(buildContext(records).messages[1]?.content).toEqual([call]);
  });

  it.each([...historyTargets.keys()])("is sent without them to %s, and the repair says so", (name) => {
    const rendering = historyTargets.get(name)?.render(buildContext(records));
    expect(rendering?.repairs.filter(({ rule }) => rule === "arguments-removed")).toMatchObject([
      { rule: "arguments-removed", recordId: "r2", before: "rm -rf build", after: null },
    ]);
    expect(JSON.stringify(rendering?.messages)).not.toContain("build");
  });
});
