import type { GuardChange } from "@throughline/guard/internal";
import type { Repair } from "@throughline/history";
import type { MessageOrigin } from "@throughline/history/internal";
import type { CallSplice } from "./call-record.ts";

/** States from which record a part of a sent message came, and what happened to it on the way. */
export interface MessagePlace {
  /** States the record; null for a part that no record holds. */
  readonly recordId: string | null;
  /**
   * `summary`: the record is the compaction whose summary is sent. `shortened`: the guard made the part smaller.
   * `repaired`: the provider would have refused it as it is. `made`: no record holds it. `kept`: none of these.
   */
  readonly reason: "kept" | "summary" | "shortened" | "repaired" | "made";
  /** Names the repair, or the kind of the overflow; null for the other reasons. */
  readonly rule: string | null;
}

interface SentMessages {
  readonly origins: readonly (readonly MessageOrigin[])[];
  readonly repairs: readonly Repair[];
  readonly summaryId: string | null;
  /** Holds the messages before and after the changes of the guard. */
  readonly rendered: readonly unknown[];
  readonly shortened: readonly unknown[];
  readonly changes: readonly GuardChange[];
  readonly splice: CallSplice | null;
}

const madeInstead: readonly MessagePlace[] = [{ recordId: null, reason: "made", rule: "history" }];

/** Returns the places of each message that was sent, in the order of the messages and their parts. */
export function placesOf(sent: SentMessages): readonly (readonly MessagePlace[])[] {
  const { origins, rendered, shortened, splice } = sent;
  const rules = new Map<string, string>();
  for (const { recordId, rule } of sent.repairs) if (!rules.has(recordId)) rules.set(recordId, rule);
  // A system prompt among the messages stands before those of the records.
  const lead = rendered.length - origins.length;
  const places = rendered.map((message, index) => {
    const own = origins[index - lead] ?? [];
    const wanted = message === shortened[index] ? null : shortenedParts(own, sent.changes, index - lead);
    return own.map((origin) => placeOf(origin, sent.summaryId, rules, wanted));
  });
  if (splice === null) return places;
  const { keepStart, keepEnd, insert } = splice;
  return [...places.slice(0, keepStart), ...insert.map(() => madeInstead), ...places.slice(places.length - keepEnd)];
}

/** Returns the parts of a message that changes made smaller, with the kind of the overflow. */
function shortenedParts(
  origins: readonly MessageOrigin[],
  changes: readonly GuardChange[],
  index: number,
): ReadonlyMap<MessageOrigin, string | null> {
  const found = new Map<MessageOrigin, string | null>();
  for (const { callId, recordId, reason } of changes)
    for (const origin of origins)
      if (callId === null ? recordId !== null && recordId === origin.recordId : callId === origin.callId)
        found.set(origin, reason);
  if (found.size > 0) return found;
  const reason = changes.find((change) => change.index === index)?.reason ?? null;
  return new Map(origins.map((origin) => [origin, reason]));
}

function placeOf(
  origin: MessageOrigin,
  summaryId: string | null,
  rules: ReadonlyMap<string, string>,
  shortened: ReadonlyMap<MessageOrigin, string | null> | null,
): MessagePlace {
  const { recordId, rule } = origin;
  if (recordId === null) return { recordId, reason: "made", rule };
  if (recordId === summaryId) return { recordId, reason: "summary", rule: null };
  if (shortened?.has(origin) === true) return { recordId, reason: "shortened", rule: shortened.get(origin) ?? null };
  const repair = rules.get(recordId);
  return repair === undefined
    ? { recordId, reason: "kept", rule: null }
    : { recordId, reason: "repaired", rule: repair };
}
