import { isContinueMessage, isFlushMessage } from "../src/message-source.ts";
import { describe, expect, it } from "vitest";

describe.each([
  ["flush", isFlushMessage],
  ["continue", isContinueMessage],
] as const)("a message with the source %s", (source, isIt) => {
  it("is a user message that says so, and nothing else is", () => {
    const message = { role: "user", content: "store what matters", source };
    expect(isIt({ type: "message", message })).toBe(true);
    expect(isIt({ type: "message", message: { ...message, source: "telegram" } })).toBe(false);
    expect(isIt({ type: "message", message: { ...message, role: "assistant" } })).toBe(false);
    expect(isIt({ type: "custom_message", message })).toBe(false);
    expect(isIt({ type: "message", message: null })).toBe(false);
    expect(isIt({ type: "message" })).toBe(false);
  });
});
