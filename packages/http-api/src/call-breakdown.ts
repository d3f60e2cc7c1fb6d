import { isFields, runInSlices } from "@throughline/core/internal";
import type { TokenEstimator } from "@throughline/tokens";
import { createAheadCounter, shareTokens } from "@throughline/tokens/internal";

/** Splits the tokens of a past request by origin. The parts add up to what the provider counted, else to the estimate. */
export interface CallBreakdown {
  /** Counts the tokens of system prompt and tools. */
  readonly prefixTokens: number;
  readonly summaryTokens: number;
  /** Counts the tokens of messages, without tool results. */
  readonly messageTokens: number;
  readonly toolResultTokens: number;
}

export interface SentCall {
  readonly provider: string;
  readonly model: string;
  /** Holds the messages in the provider's shape, and where each comes from. */
  readonly messages: readonly unknown[];
  readonly places: readonly (readonly { readonly reason: string }[])[];
  readonly system: string | null;
  readonly tools: string | null;
  /** Counts system prompt and tools, as the record of the call states it; null where it does not. */
  readonly prefixTokens: number | null;
  /** States whether the request had a system prompt or tools. */
  readonly hasPrefix: boolean;
  readonly totalTokens: number;
}

type Part = "summary" | "message" | "toolResult";

/** Splits a request in proportion to the counts of its parts, in slices. */
export async function breakDownCall(sent: SentCall, estimator: TokenEstimator): Promise<CallBreakdown> {
  const { messages, places, totalTokens } = sent;
  const counter = createAheadCounter(await estimator.counterFor({ provider: sent.provider, modelId: sent.model }));
  const parts: Readonly<Record<Part, object[]>> = { summary: [], message: [], toolResult: [] };
  for (const [index, message] of messages.entries()) {
    if (!isFields(message)) continue;
    if (places[index]?.some(({ reason }) => reason === "summary") === true) parts.summary.push(message);
    else for (const [part, piece] of piecesOf(message)) parts[part].push(piece);
  }
  await runInSlices(counter.countAhead(Object.values(parts).flat()));
  const tokensOf = (pieces: readonly object[]): number => {
    const { bareTokens, fixedTokens } = counter.countMessages(pieces);
    return bareTokens + fixedTokens;
  };
  const [summary, message, toolResult] = [parts.summary, parts.message, parts.toolResult].map(tokensOf);
  const counted = [summary ?? 0, message ?? 0, toolResult ?? 0];
  const prefix = prefixOf(sent, (text) => counter.countText(text));
  // The rest of the provider's count belongs to what no log states.
  const rest = Math.max(0, totalTokens - counted.reduce((one, other) => one + other));
  const [prefixTokens = 0, summaryTokens = 0, messageTokens = 0, toolResultTokens = 0] = shareTokens(totalTokens, [
    prefix ?? rest,
    ...counted,
  ]);
  return { prefixTokens, summaryTokens, messageTokens, toolResultTokens };
}

function prefixOf(sent: SentCall, countText: (text: string) => number): number | null {
  const { system, tools, prefixTokens, hasPrefix } = sent;
  if (prefixTokens !== null) return prefixTokens;
  if (system !== null || tools !== null) return countText(system ?? "") + countText(tools ?? "");
  return hasPrefix ? null : 0;
}

/** A message of a provider may hold results of tools beside texts, or be a result as a whole. */
function piecesOf(message: Readonly<Record<string, unknown>>): readonly (readonly [Part, object])[] {
  const { role, type } = message;
  if (role === "tool" || role === "toolResult" || type === "function_call_output") return [["toolResult", message]];
  const field = Array.isArray(message["content"]) ? "content" : "parts";
  const blocks = message[field];
  if (!Array.isArray(blocks) || !blocks.some(isResult)) return [["message", message]];
  const results = { ...message, [field]: blocks.filter(isResult) };
  const others = blocks.filter((block) => !isResult(block));
  return [
    ["toolResult", results],
    ...(others.length === 0 ? [] : [["message", { ...message, [field]: others }] as const]),
  ];
}

function isResult(block: unknown): boolean {
  return isFields(block) && (block["type"] === "tool_result" || block["functionResponse"] !== undefined);
}
