import { hasToolCall } from "./find-tool-call.ts";

/** Names what makes a summary unusable. */
export type AuditProblem =
  /** The text says nothing: it is empty, or only acknowledges the instruction. */
  | "empty"
  /** The writer declined the task, or asked for the conversation. */
  | "refusal"
  /** The text reaches its limit and ends in the middle of a sentence. */
  | "cut-off"
  /** The text is a tool call, or contains one. */
  | "tool-call"
  /** The text has at least as many tokens as the text that it replaces. */
  | "too-large";

interface AuditOptions {
  /** The summary must have fewer tokens than the text that it replaces. @default no limit */
  readonly replacedTokens?: number;
  /** One or two words cannot summarize many tokens, so the covered tokens are counted. @default `replacedTokens` */
  readonly coveredTokens?: number;
  /** A text that reaches the writer's limit is checked for a broken end. @default no limit */
  readonly maxOutputTokens?: number;
  /** @default a token for four characters */
  readonly countText?: (text: string) => number;
}

/**
 * An agent writes this word to say nothing to people. It is never a summary, even when a user made the model write it.
 */
const silencePattern = /^[\s\p{P}\p{S}]*no[ _-]?reply[\s\p{P}\p{S}]*$/iu;
const refusalPattern =
  /^(?:i(?:'m| am) (?:sorry|unable|not able)|sorry[,.!]|i (?:can(?:no|')t|cannot|won't|will not) (?:help|assist|comply|provide|summari[sz]e|do that)|as an ai\b|(?:please )?(?:provide|share|paste) (?:me )?(?:with )?the (?:conversation|text)|there is no (?:conversation|text) to)/i;
/** A refusal is short. A long text that starts with an apology quotes another person. */
const longestRefusal = 600;
/** Tokenizers have no single token for longer runs of characters. */
const charactersOfToken = 40;
const leastMost = 250;
/** A summary that covers at least this number of tokens needs more than a word or two. */
const longEnough = 500;
const fewestLetters = 8;
/** Models answer an instruction with these words instead of following it. */
const acknowledgement = /^(?:ok(?:ay)?|sure|understood|got it|done|noted|yes|thanks?|all ?right|great|will do)\b/i;
const longestAcknowledgement = 40;
/** A Chinese, Japanese or Korean letter carries as much meaning as several letters of an alphabet. */
const lettersOfOne = 3;
const sentenceEnd = /[.!?:;)\]}>"'`*_|…。！？]$/;

/**
 * Returns the problem of a summary, or null when the summary may replace the text. A failed summary counts as a failure
 * of its writer, so that the next writer is asked.
 */
export function auditSummary(summary: string, options: AuditOptions = {}): AuditProblem | null {
  const text = summary.trim();
  const countText = options.countText ?? ((body: string): number => Math.ceil(body.length / 4));
  if (!/[\p{L}\p{N}]/u.test(text)) return "empty";
  if (text.length <= longestRefusal && silencePattern.test(text)) return "empty";
  // No text has so few tokens for its length. Counting the tokens of such a text could take longer than writing it.
  const most = Math.min(options.replacedTokens ?? Infinity, (options.maxOutputTokens ?? Infinity) * 4);
  if (text.length > Math.max(most, leastMost) * charactersOfToken) return "too-large";
  const covered = options.coveredTokens ?? options.replacedTokens ?? 0;
  if (covered >= longEnough && saysNothing(text)) return "empty";
  if (hasToolCall(text)) return "tool-call";
  if (text.length <= longestRefusal && refusalPattern.test(text)) return "refusal";
  const tokens = countText(text);
  if (options.replacedTokens !== undefined && tokens >= options.replacedTokens) return "too-large";
  const isAtLimit = options.maxOutputTokens !== undefined && tokens >= options.maxOutputTokens * 0.95;
  return isAtLimit && !sentenceEnd.test(text) ? "cut-off" : null;
}

function saysNothing(text: string): boolean {
  const isAcknowledgement = text.length <= longestAcknowledgement && acknowledgement.test(text);
  return isAcknowledgement || lettersIn(text) < fewestLetters;
}

function lettersIn(text: string): number {
  const all = text.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
  const wide = text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu)?.length ?? 0;
  return all + wide * (lettersOfOne - 1);
}
