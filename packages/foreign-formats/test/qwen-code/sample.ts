type Fields = Readonly<Record<string, unknown>>;

function qwenLine(id: number, type: string, fields: Fields): Fields {
  const place = { parentUuid: id === 1 ? null : `u${id - 1}`, sessionId: "s1", cwd: "/w", version: "0.24.4" };
  return { ...place, uuid: `u${id}`, timestamp: "2026-06-30T10:00:00.000Z", type, ...fields };
}

/** A line of each kind. */
export const qwenCode: readonly Fields[] = [
  qwenLine(1, "user", { message: { role: "user", parts: [{ text: "Hi" }] } }),
  qwenLine(2, "system", {
    subtype: "ui_telemetry",
    systemPayload: {
      uiEvent: {
        "event.name": "qwen-code.api_response",
        model: "qwen3",
        input_token_count: 9,
        output_token_count: 2,
        total_token_count: 11,
        prompt_id: "compress-1",
      },
    },
  }),
  qwenLine(3, "assistant", {
    model: "qwen3",
    message: {
      role: "model",
      parts: [
        { text: "Hm.", thought: true },
        { text: "I look." },
        { functionCall: { id: "c1", name: "read", args: {} } },
      ],
    },
    usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 4, thoughtsTokenCount: 1, totalTokenCount: 13 },
  }),
  qwenLine(4, "tool_result", {
    message: { role: "user", parts: [{ functionResponse: { id: "c1", name: "read", response: { output: "ok" } } }] },
    toolCallResult: { callId: "c1", status: "success" },
  }),
  qwenLine(5, "system", { subtype: "custom_title", systemPayload: { customTitle: "Talk", titleSource: "auto" } }),
  qwenLine(6, "system", {
    subtype: "chat_compression",
    systemPayload: {
      info: { originalTokenCount: 100 },
      compressedHistory: [
        { role: "user", parts: [{ text: "In short." }] },
        { role: "model", parts: [{ text: "Got it." }] },
      ],
    },
  }),
  qwenLine(7, "user", { subtype: "notification", message: { role: "user", parts: [{ text: "Done" }] } }),
  qwenLine(8, "system", { parentUuid: "u6", subtype: "rewind", systemPayload: { truncatedCount: 1 } }),
  qwenLine(9, "user", { message: { role: "user", parts: [{ text: "More" }] } }),
];
