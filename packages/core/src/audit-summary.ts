import { hasToolCall } from "./find-tool-call.ts";

/** Why a text cannot take the place of a conversation. */
export type AuditProblem =
  /** It has no text. */
  | "empty"
  /** The writer declined, or asked for the conversation. */
  | "refusal"
  /** It ends in the middle of a sentence, and at its limit. */
  | "cut-off"
  /** It holds a call of a tool instead of, or within, a text. */
  | "tool-call"
  /** It has as many tokens as what it replaces, or more. */
  | "too-large";

interface AuditOptions {
  /** Tokens of what it replaces. @default no limit */
  readonly replacedTokens?: number;
  /** Tokens of what it summarizes: a word or two say nothing of many tokens. @default `replacedTokens` */
  readonly coveredTokens?: number;
  /** What the writer was allowed. A text that reaches it is looked at for a broken end. @default no limit */
  readonly maxOutputTokens?: number;
  /** @default a token for four characters */
  readonly countText?: (text: string) => number;
}

/** The word by which an agent says nothing to people: no summary, whoever talked the model into it. */
const silencePattern = /^[\s\p{P}\p{S}]*no[ _-]?reply[\s\p{P}\p{S}]*$/iu;
const refusalPattern =
  /^(?:i(?:'m| am) (?:sorry|unable|not able)|sorry[,.!]|i (?:can(?:no|')t|cannot|won't|will not) (?:help|assist|comply|provide|summari[sz]e|do that)|as an ai\b|(?:please )?(?:provide|share|paste) (?:me )?(?:with )?the (?:conversation|text)|there is no (?:conversation|text) to)/i;
/** A refusal is short; a long text that begins with an apology is one that quotes somebody. */
const longestRefusal = 600;
/** More than the longest runs that tokenizers have one token for. */
const charactersOfToken = 40;
const leastMost = 250;
/** A summary of at least this number of tokens needs more than a word or two. */
const longEnough = 500;
const fewestLetters = 8;
/** Words with which models answer an instruction, in place of following it. */
const acknowledgement = /^(?:ok(?:ay)?|sure|understood|got it|done|noted|yes|thanks?|all ?right|great|will do)\b/i;
const longestAcknowledgement = 40;
/** A Chinese, Japanese or Korean letter says as much as several letters of an alphabet. */
const lettersOfOne = 3;
const sentenceEnd = /[.!?:;)\]}>"'`*_|…。！？]$/;

/**
 * What is wrong with a summary; null when it may take the place of what it summarizes. A summary that fails is a
 * failure of its writer: the next one is asked.
 */
export function auditSummary(summary: string, options: AuditOptions = {}): AuditProblem | null {
  const text = summary.trim();
  const countText = options.countText ?? ((body: string): number => Math.ceil(body.length / 4));
  if (!/[\p{L}\p{N}]/u.test(text)) return "empty";
  if (text.length <= longestRefusal && silencePattern.test(text)) return "empty";
  // No text has so few tokens for its length: what is far too long is not counted, which could take longer than writing it.
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
