import { describe, expect, it } from "vitest";
import { isFlushMessage } from "@throughline/core/internal";

describe("a message of a memory flush", () => {
  it("is a user message that says so, and nothing else is", () => {
    const message = { role: "user", content: "store what matters", source: "flush" };
    expect(isFlushMessage({ type: "message", message })).toBe(true);
    expect(isFlushMessage({ type: "message", message: { ...message, source: "telegram" } })).toBe(false);
    expect(isFlushMessage({ type: "message", message: { ...message, role: "assistant" } })).toBe(false);
    expect(isFlushMessage({ type: "custom_message", message })).toBe(false);
    expect(isFlushMessage({ type: "message", message: null })).toBe(false);
  });
});
