import { Buffer } from "node:buffer";
import { replyParts } from "./simulated-reply.ts";
import type { AnswerReply } from "./simulated-reply.ts";

/** A part of a prompt that is counted on its own. */
export interface PromptPiece {
  /** What the piece says, without markers such as `cache_control`; two pieces with the same key are the same. */
  readonly key: string;
  readonly tokens: number;
  /** True at a cache breakpoint. */
  readonly marked: boolean;
}

/** Added once for every message: its role and its delimiters. */
export const tokensPerMessage = 4;

/**
 * UTF-8 bytes divided by four, rounded up: the simulator's whole tokenizer. It is nobody's vocabulary, so an estimator
 * that is right about it has learned from the figures it was given.
 */
export function tokensOfText(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}

/** A JSON value counted as the text it is sent as. */
export function tokensOfJson(value: unknown): number {
  return tokensOfText(JSON.stringify(value) ?? "");
}

/** The sum over all pieces. */
export function sumTokens(piecesOfPrompt: readonly PromptPiece[]): number {
  return piecesOfPrompt.reduce((sum, piece) => sum + piece.tokens, 0);
}

/** Tokens of a scripted answer: thinking apart, and everything with it. */
export function countReply(reply: AnswerReply): { readonly outputTokens: number; readonly thinkingTokens: number } {
  const counted = { output: 0, thinking: 0 };
  for (const part of replyParts(reply)) {
    if (part.type === "text") counted.output += tokensOfText(part.text);
    else if (part.type === "tool-call") counted.output += tokensOfText(part.name) + tokensOfJson(part.input);
    else if (part.type === "thinking") counted.thinking += tokensOfText(part.thinking);
    // What a redacted block hides is unknown to the reader but was generated all the same.
    else counted.thinking += 32;
  }
  return {
    thinkingTokens: reply.usage?.thinkingTokens ?? counted.thinking,
    outputTokens: reply.usage?.outputTokens ?? Math.max(1, counted.output + counted.thinking),
  };
}
