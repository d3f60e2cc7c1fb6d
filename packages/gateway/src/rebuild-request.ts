import type { RecordDraft, StoredRecord, Summarizer } from "@throughline/core";
import { hasErrorCode } from "@throughline/core";
import { type Fields, isFields } from "@throughline/core/internal";
import { classifyOverflow, guardCall } from "@throughline/guard";
import type { GuardChange, GuardedRequest } from "@throughline/guard/internal";
import { buildContext } from "@throughline/history";
import type { TokenEstimator } from "@throughline/tokens";
import {
  type CompactedHistory,
  messageDrafts,
  requestMessages,
  type SplitRequest,
  type WireLog,
  withMember,
} from "./wire/index.ts";
import { apiTargets, historyTargetOf } from "./api-targets.ts";
import { blockTypes, withOwnForms } from "./own-forms.ts";
import { rememberingCompactor } from "./remembered-summary.ts";
import type { Refusal } from "./refusal.ts";

export type GuardAction = "repaired" | "truncated" | "compacted";

/** Holds a request that replaces a refused one, or one that the provider would truncate. */
export interface RebuiltRequest {
  readonly text: string;
  readonly action: GuardAction;
  readonly changes: readonly GuardChange[];
  /** Is null when the request has no summary to remember. */
  readonly compacted: CompactedHistory | null;
}

export interface RebuildParts {
  readonly estimator: TokenEstimator;
  readonly summarizers: readonly Summarizer[];
  readonly signal: AbortSignal;
}

export interface RebuildReason {
  /** Is null when the provider refused nothing, but would silently truncate the request to its window. */
  readonly refusal: Refusal | null;
  readonly windowTokens: number | null;
  readonly recordIds: readonly string[];
  /** Is null when the log is not available. Then no earlier summary can be reused. */
  readonly log: WireLog | null;
}

const limitNames: Readonly<Record<SplitRequest["api"], readonly string[]>> = {
  "anthropic-messages": ["max_tokens"],
  "openai-completions": ["max_completion_tokens", "max_tokens"],
  "openai-responses": ["max_output_tokens"],
  ollama: [],
};

function modelOf(split: SplitRequest): { readonly provider: string; readonly modelId: string } {
  const model = split.member("model");
  return { provider: apiTargets[split.api][0], modelId: typeof model === "string" ? model : "" };
}

/**
 * Rebuilds a request so that the provider accepts it. An invalid history is repaired; a request that is too large is
 * shortened. Null when neither problem applies, or when no remedy helps.
 */
export async function rebuildRequest(
  split: SplitRequest,
  reason: RebuildReason,
  parts: RebuildParts,
): Promise<RebuiltRequest | null> {
  const { refusal } = reason;
  const { values, unitOf, replaced } = requestMessages(split);
  const overflow = refusal === null ? null : classifyOverflow(refusal);
  const isTooLarge = overflow === null || (overflow.overflow && overflow.kind !== "ceiling");
  const isInvalid = refusal !== null && !isTooLarge && refusal.status === 400;
  if (!isTooLarge && !isInvalid) return null;
  const repaired = repair(split, values);
  if (isInvalid && repaired === null) return null;
  let text = repaired === null ? split.text : replaced(repaired);
  if (text === null) return null;
  if (!isTooLarge) return { text, action: "repaired", changes: [], compacted: null };
  const recordIds = repaired === null ? unitOf.map((unit) => reason.recordIds[unit] ?? null) : [];
  const fitted = await fit(split, repaired ?? values, recordIds, reason, parts);
  if (fitted === null) return null;
  const { request, changes, hasCompacted, compacted } = fitted;
  text = replaced(request.messages);
  if (text === null) return null;
  const limit = limitNames[split.api].find((name) => split.member(name) !== undefined);
  if (limit !== undefined && changes.some(({ what }) => what === "output-budget"))
    text = withMember(text, limit, request.maxOutputTokens);
  return { text, action: hasCompacted ? "compacted" : "truncated", changes, compacted };
}

/**
 * Returns the messages in a form that the provider accepts. Null when they are valid already, or cannot be repaired.
 */
function repair({ api, ...split }: SplitRequest, values: readonly unknown[]): readonly unknown[] | null {
  const target = historyTargetOf(api);
  const { modelId, provider } = modelOf({ api, ...split });
  if (target.validate(values, modelId).length === 0) return null;
  let drafts: readonly RecordDraft[];
  try {
    drafts = messageDrafts(api, values, modelId);
  } catch (error) {
    if (hasErrorCode(error, "INPUT_INVALID")) return null;
    throw error;
  }
  const types = new Set(values.flatMap(blockTypes));
  const { messages } = target.render(buildContext(storedDrafts(drafts)), {
    target: { provider, modelId },
    carryBlocks: types,
  });
  if (messages.length === 0 || target.validate(messages, modelId).length > 0) return null;
  return withOwnForms(messages, values);
}

/** Gives drafts the fields that a store adds, because the context is built from stored records. */
function storedDrafts(drafts: readonly RecordDraft[]): readonly StoredRecord[] {
  return drafts.map((draft, index) => {
    const { type } = draft;
    const named = { id: `r${index + 1}`, parentId: index === 0 ? null : `r${index}` };
    const record = { ...draft, ...named, type, timestamp: new Date(0).toISOString() };
    return {
      ...named,
      type,
      seq: index + 1,
      side: false,
      tsMs: 0,
      storedAtMs: 0,
      bytes: 0,
      crc: null,
      record,
    };
  });
}

interface Fitted {
  readonly request: GuardedRequest;
  readonly changes: readonly GuardChange[];
  readonly hasCompacted: boolean;
  readonly compacted: CompactedHistory | null;
}

/** Stops the guard at the moment when it has built the request, because this code sends the request itself. */
class Made extends Error {
  readonly request: GuardedRequest;

  constructor(request: GuardedRequest) {
    super("The request is made.");
    this.request = request;
  }
}

/**
 * The guard retries by itself, but here only the first rebuilt request is wanted. Null when no remedy makes the request
 * fit.
 */
async function fit(
  split: SplitRequest,
  messages: readonly unknown[],
  recordIds: readonly (string | null)[],
  { refusal, windowTokens, log }: RebuildReason,
  { estimator, summarizers, signal }: RebuildParts,
): Promise<Fitted | null> {
  const model = modelOf(split);
  const changes: GuardChange[] = [];
  let hasCompacted = false;
  const tools = split.member("tools");
  const limit = limitNames[split.api].map((name) => split.member(name)).find((value) => typeof value === "number");
  const counter = await estimator.counterFor(model);
  const compactor = rememberingCompactor({
    recordIds,
    messageCount: messages.length,
    log,
    counter,
    options: {
      content: split.api === "anthropic-messages" ? "blocks" : "text",
      summarize: ({ prompt, maxOutputTokens }) => summaryOf(summarizers, prompt, maxOutputTokens, signal),
    },
  });
  try {
    await guardCall({
      request: {
        messages,
        system: systemText(split),
        ...(Array.isArray(tools) ? { tools: tools as readonly unknown[] } : {}),
        maxOutputTokens: typeof limit === "number" && limit >= 1 ? Math.floor(limit) : null,
      },
      model,
      counter,
      windowTokens: refusal === null ? windowTokens : null,
      readWindow: async () => windowTokens,
      recordIds,
      compact: compactor.compact,
      // Only one request follows, so the guard has to apply every remedy before the first retry.
      maxRetries: 1,
      signal,
      // The client's call was the first attempt, so its refusal is replayed here.
      call: async (request, { attempt }) => {
        if (refusal !== null && attempt === 0) throw refusal;
        throw new Made(request);
      },
      onEvent: (event) => {
        if (event.name !== "guard.shrunk") return;
        changes.push(...event.changes);
        hasCompacted ||= event.remedy === "compact";
      },
    });
    return null;
  } catch (error) {
    if (error instanceof Made) {
      const compacted = hasCompacted ? compactor.compacted : null;
      return changes.length === 0 ? null : { request: error.request, changes, hasCompacted, compacted };
    }
    if (hasErrorCode(error, "CONTEXT_OVERFLOW") || hasErrorCode(error, "ABORTED") || error === refusal) return null;
    throw error;
  }
}

/**
 * Returns the instructions outside the messages as one text. Instructions among the messages are not replaced, so they
 * do not count here.
 */
function systemText(split: SplitRequest): string | null {
  const own = split.systemParts.map((text) => textIn(JSON.parse(text)));
  const member = split.api === "openai-responses" ? split.member("instructions") : split.member("system");
  const text = [textIn(member), ...own].filter((one) => one !== "").join("\n");
  return text === "" ? null : text;
}

function textIn(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(textIn).join("\n");
  const fields: Fields = isFields(value) ? value : {};
  return textIn(fields["text"] ?? fields["content"] ?? "");
}

/** @throws the last failure when no summarizer returned a summary */
async function summaryOf(
  summarizers: readonly Summarizer[],
  prompt: string,
  maxOutputTokens: number,
  signal: AbortSignal,
): Promise<string> {
  // The prompt starts with instructions for a model. The summarizers add instructions of their own, so that part is
  // cut.
  const text = prompt.slice(prompt.indexOf("\n\n") + 2).replaceAll(/^\[(user|assistant|tool result)/gm, capitalized);
  let failure: unknown = new TypeError("nobody writes summaries");
  for (const summarizer of summarizers)
    try {
      const { summary } = await summarizer.summarize({ text, previousSummary: null, maxOutputTokens, signal });
      if (summary.trim() !== "") return summary;
    } catch (error) {
      if (signal.aborted) throw error;
      failure = error;
    }
  throw failure;
}

function capitalized(label: string): string {
  return `[${label.charAt(1).toUpperCase()}${label.slice(2)}`;
}
