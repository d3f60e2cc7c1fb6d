import { remedyLadders, type Remedy } from "./guard-steps.ts";
import type { OverflowClassification } from "./overflow.ts";

const phrases: Readonly<Record<Remedy, string>> = {
  "output-budget": "ask for a shorter answer",
  media: "leave images and files out, oldest first",
  item: "shorten the one text that is too long",
  truncate: "shorten oversized tool results",
  compact: "compact the history, once a turn",
  squeeze: "shorten tool results as far as it takes",
  drop: "leave out the oldest messages",
};

/** Describes, in words for people, the steps that the guard takes after an error. */
export function recoveryAction({ kind }: OverflowClassification): string {
  if (kind === null) return "pass the error on; the history is not touched";
  if (kind === "ceiling") return "raise CONTEXT_OVERFLOW: the rate limit is smaller than the request";
  const steps = remedyLadders[kind].map((remedy) => phrases[remedy]);
  return `${steps.join(", then ")}, then raise CONTEXT_OVERFLOW`;
}
