import { describe, expect, it } from "vitest";
import { jsonLines, readUnits, refusals, talk } from "../read-units.ts";

type Fields = Readonly<Record<string, unknown>>;

const bubble = (id: string, type: unknown, fields: Fields, more: Fields = {}): Fields => ({
  bubbleId: id,
  ...more,
  bubble: { _v: 3, bubbleId: id, type, createdAt: "2026-06-01T18:33:24.592Z", text: "", ...fields },
});
const tool = (id: string, fields: Fields): Fields => ({
  toolFormerData: {
    tool: 40,
    toolCallId: id,
    name: "read_file_v2",
    params: '{"targetFile":"a"}',
    status: "completed",
    ...fields,
  },
});

describe("a conversation of Cursor", () => {
  it("is read by its bubbles, and the pieces up to a call are one reply", () => {
    const session = readUnits(
      "cursor",
      jsonLines(
        bubble("b1", 1, { text: "Read a." }),
        bubble("b2", 2, { capabilityType: 30, thinking: { text: "Hm.", signature: "" } }),
        bubble("b3", 2, { text: "I look.", modelInfo: { modelName: "gpt-5" } }),
        bubble("b4", 2, { capabilityType: 15, ...tool("t1", { result: '{"contents":"hello"}' }) }),
        bubble("b5", 2, tool("t2", { result: "No.", status: "error" })),
        bubble("b6", 2, tool("t3", { status: "running", params: "{cut" })),
        bubble("b7", 2, { text: "Done." }),
        bubble("b8", 1, { text: "Outside" }, { unlisted: true }),
        { bubbleId: "b9", unread: true },
        bubble("b10", 7, { text: "?" }),
      ),
    );
    expect(talk(session)).toEqual([
      "user: Read a.",
      "assistant: (thinking)",
      "assistant: I look.",
      "assistant: ?t1",
      '=t1 toolResult: {"contents":"hello"}',
      "assistant: ?t2",
      "=t2 toolResult: No.",
      "assistant: ?t3",
      "assistant: Done.",
    ]);
    const ids = session.records
      .slice(1, 4)
      .map(({ record }) => (record["message"] as { readonly responseId?: string }).responseId);
    expect(new Set(ids)).toEqual(new Set(["reply-2"]));
    expect(session.findings.map(({ code, line }) => [code, line])).toEqual([
      ["RECORD_INVALID", 9],
      ["RECORD_INVALID", 10],
    ]);
    expect(refusals(session)).toEqual([]);
    expect(session.records.some(({ record }) => JSON.stringify(record).includes("Outside"))).toBe(true);
  });
});
