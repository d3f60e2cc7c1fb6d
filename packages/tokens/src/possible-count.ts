import { mediaTokens } from "./media-tokens.ts";
import { messageParts, type Countable } from "./message-parts.ts";
import { modelProfile } from "./model-profile.ts";
import type { ModelName } from "./model-name.ts";

/**
 * Limits the tokens that a prompt may have beside its messages. They include the system prompt and tools of the program
 * that made the call, and reasoning that is not stored.
 */
const mostBeside = 200_000;
/** Limits the tokens of roles, delimiters and ids of one message. */
const mostOverhead = 100;
/** Estimates of images and files may be too low by this factor. */
const mediaMargin = 8;

/**
 * Checks whether the messages before an index can have this number of tokens. A token has at least one byte of text, so
 * a count far above the bytes is a defect of the program that stored it. The loop stops as soon as the count is
 * possible.
 */
export function isPossibleCount(
  tokens: number,
  messages: readonly Countable[],
  before: number,
  model: ModelName,
): boolean {
  let left = tokens - mostBeside;
  if (left <= 0) return true;
  const { image } = modelProfile(model);
  for (let index = 0; index < before; index++) {
    const parts = messageParts(messages[index] as Countable);
    if (parts === null) continue;
    left -= mostOverhead;
    for (const text of parts.texts) left -= text.length * bytesOfUnit;
    for (const part of parts.media) left -= mediaTokens(part, image) * mediaMargin;
    if (left <= 0) return true;
  }
  return false;
}

/** A UTF-16 code unit takes at most three bytes in UTF-8. */
const bytesOfUnit = 3;
