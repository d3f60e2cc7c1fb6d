import type { Fields } from "@throughline/core/internal";
import type { ForeignFormat, FormatSample } from "../foreign-format.ts";
import { createListReader } from "../message-list.ts";
import { messageLayout } from "../message-samples.ts";
import { documentIn } from "../sample-units.ts";
import { ShareGptMessages, speakers } from "./sharegpt-messages.ts";
import { shareGptWriter } from "./write-sharegpt.ts";

const lists = [["conversations"]];

/**
 * The format covers training data in ShareGPT's form: a list of conversations, one conversation on each line, or one
 * conversation alone.
 */
export const shareGptFormat: ForeignFormat = {
  name: "sharegpt",
  program: "ShareGPT",
  layout: (sample) =>
    isList(sample) ? { unit: "document", lists, sessions: "elements" } : messageLayout(sample, lists),
  places: [],
  detect: (sample) => {
    const document = documentIn(isList(sample) ? withoutList(sample) : sample, lists);
    const [first] = document?.elements ?? [];
    return first !== undefined && isTurn(first) ? "certain" : null;
  },
  createReader: (options) => createListReader(new ShareGptMessages(), options),
  writer: shareGptWriter,
};

function isTurn({ from, value }: Fields): boolean {
  return speakers.has(from) && typeof value === "string";
}

function isList({ head }: FormatSample): boolean {
  return head[startOf(head)] === 0x5b;
}

/** The outer bracket is dropped, so that the sample begins with the first conversation. */
function withoutList({ path, head, isWhole }: FormatSample): FormatSample {
  return { path, head: head.subarray(startOf(head) + 1), isWhole };
}

function startOf(head: Uint8Array): number {
  // A byte order mark may precede the bracket.
  return Math.max(
    0,
    head.findIndex((byte) => byte > 0x20 && byte < 0x80),
  );
}
