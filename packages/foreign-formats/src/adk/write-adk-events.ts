import type { Fields } from "@throughline/core/internal";
import {
  providerMappings,
  type ProviderMapping,
  type ProviderRules,
  type ReplayTurn,
} from "@throughline/history/internal";
import type { LiveSession, TurnWriter } from "../live/live-format.ts";
import { uuidOf } from "../made-ids.ts";
import { timeOf, type WrittenConversation } from "../write-conversation.ts";

// Gemini's contents are plain JSON, but their interfaces have no index signature.
const gemini = providerMappings.gemini({}) as unknown as ProviderMapping<Fields>;

/** Each record becomes its own event, so the rules for merging and for the first role are off. */
export const adkRules: ProviderRules = {
  ...gemini.rules,
  mergesReplies: false,
  mergesUsers: false,
  beginsWithUser: false,
  trailingAssistant: () => "keep",
};

/** Writes turns as events. Calls keep their ids, because the ADK finds results by them. */
export function createAdkEvents(
  { sessionId }: LiveSession,
  conversation: WrittenConversation,
  agentName: string,
): TurnWriter {
  let timestamp = new Date(0).toISOString();
  let count = 0;
  return {
    turn: (turn) =>
      gemini.turn(turn).map((content) => {
        const isResult = turn.role === "user" && turn.results.length > 0;
        const recordId = isResult ? (turn.results[0]?.recordId ?? null) : turn.recordId;
        const origin = conversation.originOf(recordId);
        timestamp = timeOf(origin?.stored, timestamp);
        count += 1;
        const id = uuidOf(sessionId, recordId ?? `made ${count}`);
        const author = turn.role === "assistant" || isResult ? agentName : "user";
        const actions = { stateDelta: {}, artifactDelta: {}, requestedAuthConfigs: {}, requestedToolConfirmations: {} };
        return {
          content: { ...content, parts: withIds(content["parts"] as readonly Fields[], turn) },
          id,
          invocationId: `throughline-${id}`,
          author,
          actions,
          timestamp: Date.parse(timestamp),
        };
      }),
    close: () => [],
  };
}

function withIds(parts: readonly Fields[], turn: ReplayTurn): readonly Fields[] {
  return parts.map((part, at) => {
    const { functionCall: call, functionResponse: response } = part;
    if (turn.role === "assistant") {
      const block = turn.blocks[at];
      return block?.type === "toolCall" ? { ...part, functionCall: { id: block.id, ...(call as Fields) } } : part;
    }
    if (turn.role !== "user" || response === undefined) return part;
    return { ...part, functionResponse: { id: turn.results[at]?.callId, ...(response as Fields) } };
  });
}
