import type { StoredRecord } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { describe, expect, it } from "vitest";
import { inspectMessages, inspectReplays } from "../src/findings/inspect-messages.ts";

const hi = { role: "user", content: "Hi" };
const call = { role: "assistant", content: [{ type: "tool_use", id: "a", name: "look", input: {} }] };
const answer = { type: "tool_result", tool_use_id: "a", content: "found" };

describe("inspectMessages", () => {
  it("says in the provider's words what it would refuse", () => {
    const [finding] = inspectMessages([hi, call, hi], { provider: "anthropic", path: "request.json" });
    expect(finding).toMatchObject({ code: "TOOL_CALL_UNANSWERED", path: "request.json" });
    expect(finding?.message).toContain("`tool_use` ids were found without `tool_result` blocks immediately after: a");
  });

  it.each([
    ["TOOL_RESULT_ORPHAN", [{ role: "user", content: [answer] }]],
    ["DUPLICATE_TOOL_RESULT", [hi, call, { role: "user", content: [answer, answer] }]],
    ["DUPLICATE_TOOL_CALL", [hi, call, { role: "user", content: [answer] }, call, { role: "user", content: [answer] }]],
    ["MESSAGES_REFUSED", [hi, { role: "assistant", content: "Well" }]],
  ] as const)("%s", (code, messages) => {
    expect(inspectMessages(messages, { provider: "anthropic" }).map((finding) => finding.code)).toEqual([code]);
  });

  it("says nothing of what is valid", () => {
    expect(inspectMessages([hi, call, { role: "user", content: [answer] }], { provider: "anthropic" })).toEqual([]);
  });
});

describe("inspectReplays", () => {
  it("finds that a broken log can go on with any provider", () => {
    const messages: readonly object[] = [
      { role: "toolResult", toolCallId: "gone", content: "x" },
      { role: "assistant", content: [{ type: "toolCall", id: "a|b", name: "look at", arguments: {} }] },
      { role: "user", content: "" },
      { role: "assistant", content: "half", stopReason: "aborted" },
      { role: "assistant", content: [{ type: "text", text: "so " }] },
    ];
    const records = messages.map((message, index): StoredRecord => {
      const fields = { type: "message", id: `r${index}`, parentId: index === 0 ? null : `r${index - 1}` };
      const record = { ...fields, timestamp: "2026-01-02T03:04:05.006Z", message };
      return { ...fields, seq: index + 1, side: false, tsMs: null, storedAtMs: null, bytes: 0, crc: null, record };
    });
    expect(inspectReplays(buildContext(records))).toEqual([]);
  });
});
