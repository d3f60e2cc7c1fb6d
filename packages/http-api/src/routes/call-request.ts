import { hasErrorCode } from "@throughline/core";
import { runInSlices } from "@throughline/core/internal";
import { readSentRequest } from "@throughline/gateway/internal";
import { omittedWithWindow } from "@throughline/history/internal";
import { rebuildSteps, type FoundCall } from "@throughline/session/internal";
import { breakDownCall } from "../call-breakdown.ts";
import { type Answer, largeJson } from "../http/answer.ts";
import { type CallApiRequest, findCall, rebuildSent } from "./found-call.ts";

interface CallPlace {
  readonly recordId: string | null;
  readonly reason: string;
  readonly rule: string | null;
}

/** Holds the parts of a request that a call made, whichever way they were rebuilt. */
interface CallContent {
  readonly messages: readonly unknown[];
  readonly places: readonly (readonly CallPlace[])[];
  readonly omitted: readonly unknown[];
  readonly system: string | null;
  readonly tools: string | null;
}

/**
 * Answers what a call sent, with the record of each message.
 * @throws {ThroughlineError} RECORD_NOT_FOUND, RECORD_FROM_NEWER_VERSION, CAPABILITY_UNSUPPORTED
 */
export async function callRequest(request: CallApiRequest): Promise<Answer> {
  const found = await findCall(request);
  const { facts, callId, provider, model, actual, estimatedTokens } = found.call;
  const { api, systemHash, toolsHash, maxOutputTokens, prefixTokens } = facts;
  const { places, omitted, ...sent } = (await contentOfGateway(request, found)) ?? (await contentOfSession(found));
  const seqs = new Map(found.records.map(({ id, seq }) => [id, seq]));
  const seqOf = (recordId: string | null): number | null => (recordId === null ? null : (seqs.get(recordId) ?? null));
  const counted = actual === null ? null : actual.input + actual.cacheRead + actual.cacheWrite;
  const totalTokens = [counted, estimatedTokens].find(isCount) ?? 0;
  const hasPrefix = systemHash !== null || toolsHash !== null;
  const size = { provider, model, ...sent, places, prefixTokens, hasPrefix, totalTokens };
  return largeJson(200, {
    kind: "request",
    callId,
    provider,
    model,
    api,
    systemHash,
    toolsHash,
    maxOutputTokens,
    ...sent,
    places: places.map((parts) => parts.map((part) => ({ ...part, seq: seqOf(part.recordId) }))),
    breakdown: await breakDownCall(size, request.context.summaries.estimator),
    omitted,
  });
}

/** Reads a call through the gateway from the bytes that it sent. Null for other calls, and where a part was redacted. */
async function contentOfGateway(request: CallApiRequest, { call, records }: FoundCall): Promise<CallContent | null> {
  try {
    const own = records.find(({ id }) => id === call.callId);
    const rebuilt = await rebuildSent(request, own);
    const sent = readSentRequest(rebuilt.api, rebuilt);
    if (sent === null) return null;
    const places = sent.messages.map(({ recordId }) => [
      { recordId, reason: recordId === null ? "made" : "kept", rule: null },
    ]);
    return { ...sent, messages: sent.messages.map(({ value }) => value), places, omitted: [] };
  } catch (error) {
    if (!hasErrorCode(error, "CAPABILITY_UNSUPPORTED", "RECORD_NOT_FOUND")) throw error;
    return null;
  }
}

/** The log of a session holds the hashes of system prompt and tools only. */
async function contentOfSession({ call: { facts }, records, loadFiles }: FoundCall): Promise<CallContent> {
  const files = await loadFiles();
  const rebuilt = await runInSlices(rebuildSteps(records, facts, { system: null, tools: [], files }));
  const { messages, places, context } = rebuilt;
  const seen = records.filter(({ seq }) => seq >= facts.fromSeq && seq <= facts.toSeq);
  return { messages, places, omitted: omittedWithWindow(context, seen), system: null, tools: null };
}

/** Any program that may append could have written the record of a call. */
function isCount(value: number | null): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
