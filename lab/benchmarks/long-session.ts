import {
  openSession,
  sessionRef,
  type AssistantMessage,
  type ChatModel,
  type RecordDraft,
  type SessionStore,
} from "../../packages/core/src/index.ts";
import { systemRandom } from "../../packages/core/src/node/system-ports.ts";
import { createSessions } from "../../packages/session/src/index.ts";

// A session of many records, and turns on it without a provider. For lab/benchmarks/loop-delays.ts.

export const longKey = "long";
const perBatch = 500;
const modelId = "claude-sonnet-4-5";
const origin = { api: "anthropic-messages", provider: "anthropic", model: modelId } as const;
const paragraph = "The deployment of the service was checked, and its log has no error that was not known before. ";

/** A user message, a call, its result and an answer: four records, 1,500 bytes of text. */
function draftsAt(index: number): RecordDraft {
  const turn = Math.floor(index / 4);
  const content = `Words number ${index}. ${paragraph}`;
  const calls = { type: "toolCall", id: `toolu_${turn}`, name: "read", arguments: { path: `/src/file-${turn}.ts` } };
  const messages = [
    { role: "user", content },
    { role: "assistant", content: [{ type: "text", text: content }, calls], ...origin, stopReason: "toolUse" },
    {
      role: "toolResult",
      toolCallId: `toolu_${turn}`,
      toolName: "read",
      content: [{ type: "text", text: content.repeat(6) }],
      isError: false,
    },
    { role: "assistant", content: [{ type: "text", text: content.repeat(2) }], ...origin, stopReason: "stop" },
  ];
  return { type: "message", message: messages[index % 4] } as RecordDraft;
}

export async function fillSession(store: SessionStore, records: number, key: string = longKey): Promise<void> {
  const ref = sessionRef({ namespace: "", agentId: "main", key });
  await openSession(store, ref, { random: systemRandom });
  for (let from = 0; from < records; from += perBatch) {
    const length = Math.min(perBatch, records - from);
    await store.append(
      ref,
      Array.from({ length }, (_, at) => draftsAt(from + at)),
    );
  }
}

const answer: AssistantMessage = {
  role: "assistant",
  content: [{ type: "text", text: "Done." }],
  ...origin,
  stopReason: "stop",
};
const usage = { input: 900, output: 100, cacheRead: 0, cacheWrite: 0 };

function quickModel(api: ChatModel["api"]): ChatModel {
  return {
    provider: "anthropic",
    api,
    chat: () => Promise.resolve({ message: answer, stopReason: "end_turn", usage }),
  };
}

/** Opens the session, and takes the first and the second turn of a process on it. */
export async function runTurns(
  store: SessionStore,
  measured: <Result>(name: string, work: () => Promise<Result>) => Promise<Result | null>,
): Promise<void> {
  const sessions = createSessions({
    store,
    model: { chat: quickModel("anthropic"), modelId, windowTokens: 100_000_000 },
    system: () => "You are a bench.",
  });
  const ref = { agentId: "main", key: longKey };
  const session = await measured("in process: open", () => sessions.open(ref));
  if (session !== null) {
    await measured("in process: first turn", () => session.runTurn("And now?"));
    await measured("in process: second turn", () => session.runTurn("And then?"));
    await session.close();
  }
}
