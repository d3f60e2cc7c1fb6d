import { type CallUsage, readUsage, isFields } from "@throughline/core/internal";
import type { Countable } from "./message-parts.ts";
import { isSameModel, type ModelName } from "./model-name.ts";
import { isPossibleCount } from "./possible-count.ts";

/** Names the reason why a measured size is no longer valid. */
export type StaleReason = "compaction" | "edit" | "redaction" | "model-change";

/**
 * Holds the tokens in the window after the last counted call, as reported by its provider. It is plain JSON that the
 * caller stores. It describes one call only, because sums over calls state the spend and not the fill of the window.
 */
export interface Occupancy {
  /** Holds the tokens of the prompt and the reply. */
  readonly tokens: number;
  /** Names the model whose provider reported the size. */
  readonly model: ModelName;
  /**
   * States why the size is stale, or null while it is valid. A stale size may be displayed with its reason, but must
   * not drive decisions.
   */
  readonly staleBecause: StaleReason | null;
}

/** Holds the facts of a reply that determine the occupancy. */
export interface CountedReply {
  /** Holds the usage in any provider's wire format. */
  readonly usage: unknown;
  /** Names the model that replied. */
  readonly model: ModelName;
  /** States why the reply ended. The usage of `aborted` and `error` replies is not reliable. */
  readonly stopReason: string | null;
}

/** Returns the occupancy after a reply. If the reply states no usable size, the previous occupancy stays. */
export function occupancyAfter(reply: CountedReply, before: Occupancy | null): Occupancy | null {
  const usage = usableUsage(reply.usage, reply.stopReason);
  return usage === null ? before : { tokens: usage.occupancyTokens, model: reply.model, staleBecause: null };
}

/** Marks the occupancy as stale after a change other than an append. The first reason stays. */
export function markStale(occupancy: Occupancy, reason: StaleReason): Occupancy {
  return occupancy.staleBecause === null ? { ...occupancy, staleBecause: reason } : occupancy;
}

/** Returns the size in tokens. Returns null when the size is stale or was measured with another model's tokenizer. */
export function freshTokens(occupancy: Occupancy | null, model: ModelName): number | null {
  if (occupancy === null || occupancy.staleBecause !== null) return null;
  return isSameModel(occupancy.model, model) ? occupancy.tokens : null;
}

/** Holds a measured size and the number of messages that it covers. */
export interface Actual {
  /** Holds the measured tokens, including system prompt and tools. */
  readonly tokens: number;
  /** States how many messages from the start `tokens` covers. */
  readonly coversMessages: number;
}

/** After this many impossible counts the whole log is not trusted, and no count is used. */
const mostDoubted = 3;

/**
 * Returns the last measured size that is still valid for a context of `@throughline/history`. It searches back from the
 * end and stops at the first reply that decides. That is the newest reply with a usage: it counts if this model wrote
 * it and no earlier record was compacted, edited or redacted later. The search skips counts that the messages cannot
 * have.
 */
export function lastActual(messages: readonly Countable[], model: ModelName): Actual | null {
  let doubted = 0;
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (!isFields(message) || message["role"] !== "assistant") continue;
    const usage = usableUsage(message["usage"], message["stopReason"]);
    if (usage === null) continue;
    const isOfModel =
      typeof message["model"] === "string" && isSameModel({ provider: null, modelId: message["model"] }, model);
    const holds = isOfModel && message["isPrefixChanged"] !== true;
    if (!holds) return null;
    const tokens = usage.occupancyTokens;
    if (isPossibleCount(tokens, messages, index + 1, model)) return { tokens, coversMessages: index + 1 };
    doubted += 1;
    if (doubted === mostDoubted) return null;
  }
  return null;
}

function usableUsage(usage: unknown, stopReason: unknown): CallUsage | null {
  return stopReason === "aborted" || stopReason === "error" ? null : readUsage(usage);
}
