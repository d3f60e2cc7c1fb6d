import { Buffer } from "node:buffer";
import { replyParts } from "./simulated-reply.ts";
import type { AnswerReply } from "./simulated-reply.ts";

export interface PromptPiece {
  /**
   * Identifies the content of the piece. It excludes markers such as `cache_control`, so that equal pieces have equal
   * keys.
   */
  readonly key: string;
  readonly tokens: number;
  readonly marked: boolean;
}

/** Each message costs this many tokens for its role and delimiters. */
export const tokensPerMessage = 4;

/**
 * Counts UTF-8 bytes divided by four, rounded up. This is the simulator's whole tokenizer. No model uses it, so an
 * accurate estimator must have learned from the reported usage.
 */
export function tokensOfText(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}

export function tokensOfJson(value: unknown): number {
  return tokensOfText(JSON.stringify(value) ?? "");
}

export function sumTokens(piecesOfPrompt: readonly PromptPiece[]): number {
  return piecesOfPrompt.reduce((sum, piece) => sum + piece.tokens, 0);
}

/** Counts the tokens of a scripted answer. `outputTokens` includes `thinkingTokens`. */
export function countReply(reply: AnswerReply): { readonly outputTokens: number; readonly thinkingTokens: number } {
  const counted = { output: 0, thinking: 0 };
  for (const part of replyParts(reply)) {
    if (part.type === "text") counted.output += tokensOfText(part.text);
    else if (part.type === "tool-call") counted.output += tokensOfText(part.name) + tokensOfJson(part.input);
    else if (part.type === "thinking") counted.thinking += tokensOfText(part.thinking);
    // The content of a redacted block is hidden, but the model generated it, so it costs a fixed number of tokens.
    else counted.thinking += 32;
  }
  return {
    thinkingTokens: reply.usage?.thinkingTokens ?? counted.thinking,
    outputTokens: reply.usage?.outputTokens ?? Math.max(1, counted.output + counted.thinking),
  };
}
