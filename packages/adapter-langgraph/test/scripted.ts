import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import {
  emptyCheckpoint,
  uuid6,
  type BaseCheckpointSaver,
  type CheckpointTuple,
} from "@langchain/langgraph-checkpoint";
import type { SessionStore } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import { frameworkSessionKey } from "@throughline/foreign-formats/internal";
import { buildContext } from "@throughline/history";
import { historyTargets } from "@throughline/history/internal";

export type Config = Parameters<BaseCheckpointSaver["getTuple"]>[0];

export const refOf = (id: string): ReturnType<typeof frameworkSessionKey> =>
  frameworkSessionKey({ agentId: "main", framework: "langgraph", id });

export const at = (threadId: string, checkpointId?: string, ns = ""): Config => ({
  configurable: {
    thread_id: threadId,
    checkpoint_ns: ns,
    ...(checkpointId === undefined ? {} : { checkpoint_id: checkpointId }),
  },
});

export const human = (id: string, content: string): HumanMessage => new HumanMessage({ id, content });
export const ai = (id: string, content: string): AIMessage => new AIMessage({ id, content });
export const called = (id: string, callId: string): AIMessage =>
  new AIMessage({ id, content: "", tool_calls: [{ id: callId, name: "clock", args: {}, type: "tool_call" }] });
export const result = (id: string, callId: string, content: string): ToolMessage =>
  new ToolMessage({ id, tool_call_id: callId, name: "clock", content });

/** Puts a checkpoint with these values behind another one; all channels are new. */
export async function put(
  saver: BaseCheckpointSaver,
  config: Config,
  values: Readonly<Record<string, unknown>>,
  { version = 1, id = uuid6(0) }: { readonly version?: number; readonly id?: string } = {},
): Promise<Config> {
  const versions = Object.fromEntries(Object.keys(values).map((name) => [name, version]));
  const checkpoint = { ...emptyCheckpoint(), id, channel_values: { ...values }, channel_versions: versions };
  return await saver.put(config, checkpoint, { source: "loop", step: version, parents: {} }, versions);
}

export function messagesOf(tuple: CheckpointTuple | undefined): readonly BaseMessage[] {
  return (tuple?.checkpoint.channel_values["messages"] ?? []) as readonly BaseMessage[];
}

/** Messages in one line each, as graphs and contexts both have them. */
export function outline(messages: readonly BaseMessage[]): readonly string[] {
  return messages.map((message) => {
    const calls = (message as AIMessage).tool_calls ?? [];
    return `${message.getType()}: ${message.text}${calls.map(({ id }) => ` ?${String(id)}`).join("")}`;
  });
}

const types: Readonly<Record<string, string>> = {
  user: "human",
  assistant: "ai",
  toolResult: "tool",
  system: "system",
};

export async function recordsOf(store: SessionStore, id: string): Promise<readonly SourcedRecord[]> {
  const pages = await Array.fromAsync(store.read(refOf(id), { payload: "source" }));
  return pages.flatMap(({ records }) => records);
}

/** The conversation as every other program sees it; each provider accepts it. */
export async function conversationOf(store: SessionStore, id: string): Promise<readonly string[]> {
  const state = await store.load(refOf(id));
  const context = buildContext(await recordsOf(store, id), { headId: state?.head.headId ?? null });
  // No provider takes a request without a message.
  for (const target of context.messages.length === 0 ? [] : historyTargets.values()) {
    const { messages } = target.render(context);
    const violations = target.validate(messages, context.model?.modelId ?? null);
    if (violations.length > 0) throw new Error(`${target.name}: ${JSON.stringify(violations)}`);
  }
  return context.messages.map(({ role, content }) => {
    const words = content.map((block) => (block.type === "text" ? block.text : "")).join("");
    const calls = content.map((block) => (block.type === "toolCall" ? ` ?${block.id}` : "")).join("");
    return `${types[role] ?? role}: ${words}${calls}`;
  });
}
