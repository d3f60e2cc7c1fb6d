import type { AssistantItem, CallSite } from "./replay-item.ts";
import type { ReplayRules } from "./replay-rules.ts";
import type { AssistantTurn } from "./replay-turn.ts";

/** Holds the reply that later items may still join. */
export interface OpenReply {
  readonly turn: AssistantTurn;
  readonly calls: { readonly site: CallSite; readonly id: string; readonly name: string }[];
  last: AssistantItem;
  /** Holds the log position of the last result of its calls, or -1 without a result. */
  lastResultPlace: number;
}

/** Sorts the calls by the arrival of their results, missing results last, or keeps the order of the calls. */
export function callsInOrder(
  calls: OpenReply["calls"],
  { resultsInCallOrder }: Pick<ReplayRules, "resultsInCallOrder">,
): OpenReply["calls"] {
  if (calls.length < 2 || resultsInCallOrder) return calls;
  const place = ({ site }: OpenReply["calls"][number]): number => site.result?.place ?? Infinity;
  return calls.toSorted((one, other) => (place(one) < place(other) ? -1 : place(one) > place(other) ? 1 : 0));
}
