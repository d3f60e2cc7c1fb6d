type Fields = Readonly<Record<string, unknown>>;

/** An event as version 1.9 of the protocol writes it. */
export function kimiEvent(second: number, type: string, payload: Fields = {}): Fields {
  return { timestamp: 1_790_000_000.25 + second, message: { type, payload } };
}

export const kimiHead: Fields = { type: "metadata", protocol_version: "1.9" };

export function kimiCall(second: number, id: string, name: string, given: string): Fields {
  return kimiEvent(second, "ToolCall", { type: "function", id, function: { name, arguments: given }, extras: null });
}

export function kimiResult(second: number, id: string, output: unknown, more: Fields = {}): Fields {
  const value = { is_error: false, output, message: "", display: [], extras: null, ...more };
  return kimiEvent(second, "ToolResult", { tool_call_id: id, return_value: value });
}

/** A line of each kind. */
export const kimiCli: readonly Fields[] = [
  kimiHead,
  kimiEvent(0, "TurnBegin", { user_input: [{ type: "text", text: "Hi" }] }),
  kimiEvent(1, "StepBegin", { n: 1 }),
  kimiEvent(2, "ContentPart", { type: "think", think: "Hm.", encrypted: null }),
  kimiEvent(3, "ContentPart", { type: "text", text: "I look." }),
  kimiCall(4, "c1", "ReadFile", '{"path":"a.txt"}'),
  kimiEvent(5, "StatusUpdate", {
    context_usage: 0.1,
    token_usage: { input_other: 3, output: 20, input_cache_read: 7, input_cache_creation: 0 },
    message_id: "m1",
  }),
  kimiResult(6, "c1", "ok"),
  kimiEvent(7, "StepBegin", { n: 2 }),
  kimiEvent(8, "StepRetry", { n: 2, next_attempt: 2, max_attempts: 3, wait_s: 1, error_type: "APITimeoutError" }),
  kimiEvent(9, "ContentPart", { type: "text", text: "Done." }),
  kimiEvent(10, "TurnEnd"),
];
