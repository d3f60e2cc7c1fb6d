import { createTokenEstimator, emptyCalibration, estimateContext } from "@throughline/tokens";
import { describe, expect, it } from "vitest";

const messages = [
  { role: "user", content: "What does the log say? ".repeat(20) },
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "Let me look." },
      { type: "toolCall", id: "call-1", name: "read", arguments: { path: "a.log" } },
    ],
  },
  { role: "toolResult", toolCallId: "call-1", content: "2026-01-01 ERROR 0x7ffe 完了\n".repeat(100) },
  { role: "user", content: [{ type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }] },
];

describe("countMessage", () => {
  it.each([
    ["anthropic", "claude-opus-5"],
    ["openai", "gpt-5"],
    [null, "nobody-knows-it"],
  ] as const)("counts each message at the upper end of the estimate: %s %s", async (provider, modelId) => {
    const counter = await createTokenEstimator().counterFor({ provider, modelId });
    for (const message of messages) {
      const options = { counter, calibration: emptyCalibration, actual: null };
      expect(counter.countMessage(message)).toBe(estimateContext({ messages: [message] }, options).highTokens);
    }
    expect(counter.countMessage({ role: "observer", content: "No model sees this." })).toBe(0);
  });
});
