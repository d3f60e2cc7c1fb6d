import { type CallUsage, readUsage, isFields } from "@throughline/core/internal";
import type { Countable } from "./message-parts.ts";
import { isSameModel, type ModelName } from "./model-name.ts";
import { isPossibleCount } from "./possible-count.ts";

/** Why a measured size no longer holds. */
export type StaleReason = "compaction" | "edit" | "redaction" | "model-change";

/**
 * What the window held after the last call that counted, as its provider said. Plain JSON, for the caller to keep.
 * Of one call only: sums over calls say what was spent, not what the window holds.
 */
export interface Occupancy {
  /** Tokens of the prompt and the reply. */
  readonly tokens: number;
  /** The model whose provider said so. */
  readonly model: ModelName;
  /** Null while it holds. A stale one is shown, if at all, as what it is, and decides nothing. */
  readonly staleBecause: StaleReason | null;
}

/** A reply as a caller has it. */
export interface CountedReply {
  /** In the shape of any provider. */
  readonly usage: unknown;
  /** The model that replied. */
  readonly model: ModelName;
  /** `aborted` and `error` tell that the usage is not to be trusted. */
  readonly stopReason: string | null;
}

/** The occupancy after a reply: a new one when the reply states a usable size, else the one there was. */
export function occupancyAfter(reply: CountedReply, before: Occupancy | null): Occupancy | null {
  const usage = usableUsage(reply.usage, reply.stopReason);
  return usage === null ? before : { tokens: usage.occupancyTokens, model: reply.model, staleBecause: null };
}

/** Marks that what the window holds has changed otherwise than by appending. The first reason stays. */
export function markStale(occupancy: Occupancy, reason: StaleReason): Occupancy {
  return occupancy.staleBecause === null ? { ...occupancy, staleBecause: reason } : occupancy;
}

/** The size, or null when it is stale or was measured with the tokenizer of another model. */
export function freshTokens(occupancy: Occupancy | null, model: ModelName): number | null {
  if (occupancy === null || occupancy.staleBecause !== null) return null;
  return isSameModel(occupancy.model, model) ? occupancy.tokens : null;
}

/** A measured size and how much of a list of messages it covers. */
export interface Actual {
  /** The measured size, with system prompt and tools. */
  readonly tokens: number;
  /** How many messages from the start are in `tokens`. */
  readonly coversMessages: number;
}

/** A log that states several counts it cannot have states none. */
const mostDoubted = 3;

/**
 * The last measured size that is still valid for a context of `@throughline/history`. It is that of the newest reply of
 * this model that states one, unless an earlier record was compacted, edited or redacted later. A count that the
 * messages cannot have is passed over. Looks back from the end and stops at the first reply that decides.
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
