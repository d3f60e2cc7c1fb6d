import type { CallFacts } from "@throughline/session/internal";
import type { GuardChange } from "@throughline/guard/internal";
import type { RecordDraft, AssistantMessage } from "@throughline/core";
import { callDrafts } from "@throughline/session/internal";
import {
  bodyText,
  type CallPlan,
  type CompactedHistory,
  type KnownText,
  planFrame,
  planRebuiltFrame,
  splitRequest,
  type SplitRequest,
  type WireApi,
  type WireLog,
} from "./wire/index.ts";
import { apiTargets, usualPaths } from "./api-targets.ts";
import type { GatewayMode } from "./gateway-options.ts";
import type { GuardAction } from "./rebuild-request.ts";
import { throughlineDraft } from "@throughline/core/internal";

export interface EndedCall {
  readonly recordId: string;
  readonly api: WireApi;
  readonly upstream: string;
  readonly mode: GatewayMode;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly responseHeaders: Readonly<Record<string, string>>;
  readonly status: number;
  readonly outcome: CallFacts["outcome"];
  readonly startedMs: number;
  readonly firstByteMs: number | null;
  readonly endedMs: number;
  readonly requestSha256: string;
  readonly requestBytes: number;
  /** The hash in `requestSha256` covers the decoded body, so the encoding is recorded beside it. */
  readonly requestEncoding: string | null;
  readonly responseSha256: string;
  readonly responseBytes: number;
  readonly errorBody: string | null;
  readonly unknownEvents: readonly string[];
}

export interface RebuiltAttempt {
  readonly call: EndedCall;
  readonly body: Buffer;
  readonly action: GuardAction;
  readonly changes: readonly GuardChange[];
  readonly compacted: CompactedHistory | null;
}

export interface CallPlace {
  readonly callId: string;
  readonly attempt: number;
  readonly lane: string;
  readonly compactionOf: string | null;
  readonly replyId: string | null;
  readonly responseId: string | null;
  readonly reply: AssistantMessage | null;
}

export interface CallParts {
  readonly plan: Pick<CallPlan, "tip" | "nodes">;
  readonly split: SplitRequest;
  readonly log: WireLog;
  readonly rebuilt?: RebuiltParts;
}

export interface RebuiltParts {
  readonly split: SplitRequest;
  readonly known: readonly KnownText[];
  /** Holds the SHA-256 of the client's request, which links the record to that request. */
  readonly of: string;
  /** Is null in stateful mode: the rebuilt request holds the session's history, without a remedy of the guard. */
  readonly action: GuardAction | null;
  readonly changes: readonly GuardChange[];
  readonly compacted: CompactedHistory | null;
}

/**
 * Returns the records of a call, and those of its second attempt if the gateway made one. The reply belongs to the last
 * attempt.
 *
 * @param known the messages of the client's request
 * @param of the SHA-256 of the client's request
 */
export function attemptRecords(
  { call, rebuilt }: { readonly call: EndedCall; readonly rebuilt: RebuiltAttempt | null },
  place: CallPlace,
  { known, of, ...parts }: CallParts & Pick<RebuiltParts, "known" | "of">,
): readonly RecordDraft[] {
  if (rebuilt === null) return callRecords(call, place, parts);
  const unanswered = { ...place, replyId: null, responseId: null, reply: null };
  const second = { ...place, attempt: place.attempt + 1 };
  return [
    ...callRecords(call, unanswered, parts),
    ...callRecords(rebuilt.call, second, { ...parts, rebuilt: rebuiltParts(of, rebuilt, known) }),
  ];
}

function rebuiltParts(
  of: string,
  { call, body, action, changes, compacted }: RebuiltAttempt,
  known: readonly KnownText[],
): RebuiltParts {
  const text = bodyText(body);
  const split = text === null ? null : splitRequest(call.api, text);
  if (split === null) throw new RangeError("The rebuilt request has no messages.");
  return { split, known, of, action, changes, compacted: compacted ?? null };
}

function callRecords(call: EndedCall, place: CallPlace, parts: CallParts): readonly RecordDraft[] {
  const { plan, log, rebuilt } = parts;
  const { recordId, errorBody, unknownEvents, requestEncoding, query, responseHeaders, ...facts } = call;
  const { compactionOf, replyId, responseId, lane, callId, attempt } = place;
  const exchangeId = exchangeIdFor(recordId);
  const {
    data: frame,
    copies,
    hasRedacted,
  } = rebuilt === undefined ? planFrame(log, parts.split, plan) : planRebuiltFrame(log, rebuilt.known, rebuilt.split);
  // Long tools are stored in the frame, so the exchange omits their hash.
  const tools = parts.split.partHash("tools");
  const isInFrame = frame.frame.some((entry) => typeof entry === "object" && "part" in entry && entry.part === tools);
  const toolsHash = isInFrame ? null : tools;
  const further = copies.filter((id) => !Object.hasOwn(frame.forms ?? {}, id));
  // A redacted message may reappear in the request or in the provider's error. Quoting either would restore what was
  // redacted.
  const isQuoted = !hasRedacted;
  const { mode, method, path, requestHeaders, ...stated } = facts;
  const exchange = throughlineDraft("exchange", {
    // Every call has an exchange record, so default values are omitted to keep it small.
    ...(callId === recordId ? {} : { callId }),
    ...(attempt === 0 ? {} : { attempt }),
    ...(lane === "main" ? {} : { lane }),
    ...(mode === "record" ? {} : { mode }),
    ...(method === "POST" ? {} : { method }),
    ...(path === usualPaths[call.api] ? {} : { path }),
    ...(JSON.stringify(requestHeaders) === log.headers ? {} : { requestHeaders }),
    ...stated,
    ...(rebuilt === undefined ? {} : { rebuiltFrom: rebuilt.of }),
    ...(rebuilt === undefined || rebuilt.action === null ? {} : { guard: rebuilt.action }),
    ...(rebuilt?.compacted == null || hasRedacted ? {} : { compacted: rebuilt.compacted }),
    ...(query === "" ? {} : { query }),
    ...(requestEncoding === null ? {} : { requestEncoding }),
    ...(Object.keys(responseHeaders).length === 0 ? {} : { responseHeaders }),
    ...(isQuoted && errorBody !== null ? { errorBody } : {}),
    ...(isQuoted && unknownEvents.length > 0 ? { unknownEvents } : {}),
    ...(compactionOf === null ? {} : { compactionOf }),
    ...(replyId === null ? {} : { replyId }),
    ...(responseId === null ? {} : { responseId }),
    ...(toolsHash === null ? {} : { toolsHash }),
    ...frame,
    ...(further.length === 0 ? {} : { copies: further }),
  });
  const [first, ...more] = callDrafts(factsOf(call, place, parts));
  if (first === undefined) throw new RangeError("A call has one record at least.");
  const data = { ...(first["data"] as object), exchangeId };
  return [{ ...exchange, id: exchangeId }, { ...first, data, id: recordId }, ...more];
}

/** Names the record of an exchange before it and the record of its call are written. */
export function exchangeIdFor(recordId: string): string {
  return `x-${recordId}`;
}

function factsOf(call: EndedCall, place: CallPlace, { plan, log, rebuilt, ...parts }: CallParts): CallFacts {
  const [provider, api] = apiTargets[call.api];
  const split = rebuilt?.split ?? parts.split;
  const model = split.member("model");
  const limit =
    split.member("max_tokens") ?? split.member("max_output_tokens") ?? split.member("max_completion_tokens");
  const { usage } = place.reply ?? {};
  return {
    turnId: place.callId,
    step: 1,
    attempt: place.attempt,
    provider,
    api,
    model: typeof model === "string" ? model : "",
    fromSeq: 1,
    toSeq: log.lastSeq,
    headId: plan.tip?.lastId ?? null,
    summaryId: null,
    messageCount: split.units.length,
    systemHash: split.partHash("system")?.slice(0, 12) ?? null,
    toolsHash: split.partHash("tools")?.slice(0, 12) ?? null,
    prefixTokens: null,
    // The gateway does not count tokens before a call. It uses the provider's count, or a quarter of the request bytes.
    estimatedTokens:
      usage === undefined ? Math.ceil(call.requestBytes / 4) : usage.input + usage.cacheRead + usage.cacheWrite,
    maxOutputTokens: typeof limit === "number" ? limit : null,
    windowTokens: null,
    // The exchange states the times.
    startedMs: null,
    durationMs: null,
    firstTextMs: null,
    outcome: call.outcome,
    actual: usage === undefined ? null : [usage.input, usage.output, usage.cacheRead, usage.cacheWrite],
    changes: rebuilt?.changes ?? [],
    thinkingOut: null,
    splice: null,
    cut: null,
  };
}
