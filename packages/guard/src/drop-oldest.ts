import { isFields } from "@throughline/core/internal";
import { countInstructions, findCut } from "./find-cut.ts";
import { findResults } from "./message-slots.ts";

export interface DropOptions {
  readonly estimate: (messages: readonly unknown[]) => number;
  /** Limits the tokens of the messages. Null means half of their current size. */
  readonly targetTokens: number | null;
}

/** Limits the newest request when it is quoted in the note, in characters. */
const mostRequestCharacters = 2000;

/**
 * Drops as few of the oldest messages as the target requires, without asking a model. A short first message stays,
 * because it is a summary or the goal. The text of the newest dropped request stays too. Null when no cut is possible
 * or the result is not smaller.
 */
export function dropOldest(messages: readonly unknown[], options: DropOptions): readonly unknown[] | null {
  const instructions = countInstructions(messages);
  const conversation = messages.slice(instructions);
  const target = options.targetTokens ?? options.estimate(messages) / 2;
  const build = (cut: number): readonly unknown[] => [
    ...messages.slice(0, instructions),
    ...opening(conversation, cut, target / 4, options.estimate),
    ...conversation.slice(cut),
  ];
  let low = 1;
  let high = conversation.length;
  let found: readonly unknown[] | null = null;
  let isEnough = false;
  // A later cut gives a smaller list. The binary search finds the first cut that fits, which drops the least.
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const cut = findCut(conversation, middle, low - 1);
    const candidate = cut === null ? null : build(cut);
    if (cut === null || candidate === null) break;
    const fits = options.estimate(candidate) <= target;
    // A candidate that is still too large is kept only until one fits.
    if (fits || !isEnough) found = candidate;
    isEnough ||= fits;
    if (fits) high = Math.min(middle, cut);
    else low = Math.max(middle, cut) + 1;
  }
  return found !== null && options.estimate(found) < options.estimate(messages) ? found : null;
}

/**
 * Builds the messages before the cut: the first message, a note, and the newest dropped request. An acknowledgement
 * follows when the next message is a user's, because roles must alternate.
 */
function opening(
  conversation: readonly unknown[],
  cut: number,
  mostTokens: number,
  estimate: DropOptions["estimate"],
): readonly unknown[] {
  const first = conversation[0];
  const firstText = isTyped(first) && estimate([first]) <= mostTokens ? textOf(first) : null;
  const latest = conversation.slice(firstText === null ? 0 : 1, cut).findLast(isTyped);
  const left = cut - (firstText === null ? 0 : 1);
  const parts = [
    firstText,
    `[${left} messages were left out here: the request was too large]`,
    latest === undefined
      ? null
      : `The latest request among them was:\n${textOf(latest).slice(0, mostRequestCharacters).toWellFormed()}`,
  ];
  const note = { role: "user", content: parts.filter((part) => part !== null).join("\n\n") };
  const next = conversation[cut];
  const isUserNext = isFields(next) && next["role"] === "user";
  return isUserNext ? [note, { role: "assistant", content: "Understood." }] : [note];
}

/** Tool results may come as user messages. They are not text that a user wrote. */
function isTyped(message: unknown): boolean {
  return (
    isFields(message) && message["role"] === "user" && findResults([message]).length === 0 && textOf(message) !== ""
  );
}

function textOf(message: unknown): string {
  const content: unknown = isFields(message) ? message["content"] : null;
  if (typeof content === "string") return content;
  const blocks = Array.isArray(content) ? content.filter(isFields) : [];
  return blocks.map(({ text }) => (typeof text === "string" ? text : "")).join("\n");
}
