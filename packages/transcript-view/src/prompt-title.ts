import type { SessionRecord } from "@throughline/core";
import { isFields } from "@throughline/core/internal";
import { blocksOf, textOf } from "./block-nodes.ts";
import type { RowOptions } from "./row-options.ts";
import { shortText } from "./tool-row.ts";

const mostCharacters = 120;
/** Programs write these messages in the name of the user. */
const programSources: ReadonlySet<unknown> = new Set(["flush", "continue", "correction"]);

/** Returns the first line of what a person said in a record; null for a message of a program and every other record. */
export function promptTitle(record: SessionRecord, { promptText }: Pick<RowOptions, "promptText">): string | null {
  const message = record.type === "message" && isFields(record["message"]) ? record["message"] : null;
  if (message?.["role"] !== "user" || programSources.has(message["source"])) return null;
  const blocks = blocksOf(message["content"]);
  const texts = blocks.flatMap(({ type, text }) => (type === "text" ? [textOf(text)] : []));
  const words = texts.map(promptText).join("\n").trim();
  if (words !== "") return shortText(words, mostCharacters);
  // A prompt may be code or an address alone, of which no words remain.
  const bare = texts.find((text) => /^\s{0,99}(```|~~~|https?:\/\/|\/)/.test(text));
  if (bare !== undefined) return shortText(bare.replace(/^[\s`~]{1,99}/, ""), mostCharacters);
  return blocks.some(({ type }) => type === "image" || type === "file") ? "Attachment" : null;
}
