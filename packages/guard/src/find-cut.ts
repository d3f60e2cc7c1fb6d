import { isFields } from "@throughline/core/internal";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Finds the position nearest to `wanted` where a list may be cut, and searches towards the start first. A cut is valid
 * before a user or assistant message when no call and its result end up on different sides. Null when no position
 * between `least` and the end is valid.
 */
export function findCut(messages: readonly unknown[], wanted: number, least: number): number | null {
  const open = openCalls(messages);
  const isClean = (cut: number): boolean =>
    open[cut] === 0 && isBeginning(messages[cut]) && !isReasoning(messages[cut - 1]);
  for (let cut = wanted; cut > least; cut--) if (isClean(cut)) return cut;
  for (let cut = wanted + 1; cut < messages.length; cut++) if (isClean(cut)) return cut;
  return null;
}

/** Instructions come before the conversation and must survive every cut. */
export function countInstructions(messages: readonly unknown[]): number {
  const first = messages.findIndex(
    (message) => !["system", "developer"].includes(String(isFields(message) && message["role"])),
  );
  return first === -1 ? messages.length : first;
}

function isBeginning(message: unknown): boolean {
  if (!isFields(message)) return false;
  if (message["type"] === "reasoning") return true;
  return (message["role"] === "user" || message["role"] === "assistant") && resultCount(message) === 0;
}

function isReasoning(message: unknown): boolean {
  return isFields(message) && message["type"] === "reasoning";
}

/**
 * For each position, counts the calls before it that are answered only after it. The calls are counted, because Ollama
 * has no call ids.
 */
function openCalls(messages: readonly unknown[]): readonly number[] {
  let open = 0;
  const before: number[] = [];
  for (const message of messages) {
    before.push(open);
    if (!isFields(message)) continue;
    const calls = callCount(message);
    // A reply with calls resets the count, because older unanswered calls are never answered later.
    open = calls > 0 && message["type"] !== "function_call" ? calls : Math.max(0, open + calls - resultCount(message));
    if (message["role"] === "user" && resultCount(message) === 0) open = 0;
  }
  return before;
}

function callCount(message: Fields): number {
  if (message["type"] === "function_call") return 1;
  const beside = Array.isArray(message["tool_calls"]) ? message["tool_calls"].length : 0;
  return beside + blocksOfType(message, "tool_use");
}

function resultCount(message: Fields): number {
  if (message["type"] === "function_call_output" || message["role"] === "tool") return 1;
  return blocksOfType(message, "tool_result");
}

function blocksOfType(message: Fields, type: string): number {
  const content: unknown = message["content"];
  return Array.isArray(content) ? content.filter((block) => isFields(block) && block["type"] === type).length : 0;
}
