import type { NothingReason } from "@throughline/compaction/internal";
import type { CompactionRow } from "@throughline/http-api/internal/compaction-json";
import { counted } from "../counted.ts";

/** The final line of the command repeats these events, so they are not printed twice. */
export const compactionReports: ReadonlySet<string> = new Set([
  "compaction.planned",
  "compaction.replanned",
  "compaction.applied",
  "compaction.superseded",
]);

export function compactionText(row: CompactionRow, messages: number | null): string {
  const { state, tokensBefore, tokensAfter, messagesRemoved, source, provider, needsRetry, firstKeptSeq } = row;
  const before = (tokensBefore ?? 0).toLocaleString("en");
  const removed = counted(messagesRemoved ?? 0, "older message");
  const kept = firstKeptSeq === null ? "" : ` Messages from #${firstKeptSeq} on stay word for word.`;
  switch (state) {
    case "planned":
      return `Would summarize ${removed} of a context of ~${before} tokens.${kept} Nothing was changed.`;
    case "compacted": {
      const by = provider === null || provider === source ? source : `${source}, ${provider}`;
      const later = needsRetry === true ? " No model wrote the summary; a better one is tried later." : "";
      return `Summarized ${removed} (${by}).${kept} ~${before} → ~${(tokensAfter ?? 0).toLocaleString("en")} tokens.${later}`;
    }
    case "superseded":
      return "Another process summarized first; its summary is used.";
    case "nothing":
      return `Nothing was summarized: ${nothingText(row.reason, messages)}`;
  }
}

function nothingText(reason: NothingReason | null, messages: number | null): string {
  const has = messages === null ? "too few messages" : counted(messages, "message");
  switch (reason) {
    case "too-few-messages":
      return `the context has ${has}, and more than 4 are needed.`;
    case "no-place":
      return "there is no place at which the conversation could be cut.";
    case "no-gain":
      return "a summary would be no shorter than what it replaces.";
    default:
      return "there is no checkpoint that could stand for it.";
  }
}
