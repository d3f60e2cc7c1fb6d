import type { RecordDraft, SessionRef } from "@throughline/core";

/** What a process is at when it is killed. */
export type KilledWork = "checkpoint" | "compaction" | "retry";

export const killedRef: SessionRef = { namespace: "", agentId: "main", key: "agent:main:cli:direct:home" };

export const summaryOf = (work: KilledWork): string => `The ${work} says that they read the files and went on.`;

const words = "The parser reads each line and keeps what it cannot read. ".repeat(12);

/** Requests, calls with results and answers, about 500 tokens each time. */
export function talk(count: number): readonly RecordDraft[] {
  return Array.from({ length: count }, (_, at) => {
    const call = { type: "toolCall", id: `call_${at}`, name: "read", arguments: { path: `src/part-${at}.ts` } };
    const model = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" };
    const messages = [
      { role: "user", content: `Request ${at}: ${words}` },
      { role: "assistant", content: [call], ...model, stopReason: "toolUse" },
      { role: "toolResult", toolCallId: call.id, toolName: "read", content: [{ type: "text", text: words }] },
      { role: "assistant", content: [{ type: "text", text: `Answer ${at}. ${words}` }], ...model, stopReason: "stop" },
    ];
    return messages.map((message): RecordDraft => ({ type: "message", message }));
  }).flat();
}
