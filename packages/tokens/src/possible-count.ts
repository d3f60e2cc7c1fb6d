import { mediaTokens } from "./media-tokens.ts";
import { messageParts, type Countable } from "./message-parts.ts";
import { modelProfile } from "./model-profile.ts";
import type { ModelName } from "./model-name.ts";

/**
 * The most that a prompt may have beside its messages, in tokens. It covers the system prompt and the tools of whatever program
 * made the call, and reasoning that is not stored.
 */
const mostBeside = 200_000;
/** Roles, delimiters and ids of one message. */
const mostOverhead = 100;
/** Estimates of images and files may be off by as much. */
const mediaMargin = 8;

/**
 * Whether the messages before an index can have this number of tokens. A token has a byte of text at least, so a count far above the bytes is a
 * defect of whoever stored it. Looks at no more messages than it takes to say yes.
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

/** UTF-8 has at most three bytes for a UTF-16 code unit. */
const bytesOfUnit = 3;
