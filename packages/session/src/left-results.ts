import type { RecordDraft, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { interruptedResult } from "./run-tools.ts";
import { WindowFacts } from "./window-facts.ts";

/**
 * Creates results for calls that provably did not run. Without them a rebuilt history would state that the calls may
 * have run. Drafts that name a source or a parent, or that answer a call themselves, get none.
 */
export function notRunResults(facts: WindowFacts, drafts: readonly object[] = []): readonly RecordDraft[] {
  const fields = drafts as readonly Readonly<Record<string, unknown>>[];
  if (fields.some((draft) => "source" in draft || draft["parentId"] !== undefined)) return [];
  const answered = new Set(
    fields.map(({ message }) => (message as { readonly toolCallId?: unknown } | undefined)?.toolCallId),
  );
  const notRun = [...facts.openCalls].filter(
    ([id]) => !answered.has(id) && facts.interruptedCall(id) !== "may-have-run",
  );
  return notRun.map(([id, name]) => interruptedResult(id, name, facts.interruptedCall(id)));
}

/** Reads the log back to its newest reply, to find the calls of that reply without results. */
export async function readNewestCalls(store: SessionStore, ref: SessionRef): Promise<WindowFacts> {
  const newest: StoredRecord[] = [];
  const facts = new WindowFacts();
  reading: for await (const { records } of store.read(ref, { order: "descending" }))
    for (const record of records) {
      newest.push(record);
      if (beginsReply(record)) break reading;
    }
  for (const record of newest.toReversed()) facts.take(record);
  return facts;
}

/** Returns true for a reply, and for every record after which no call is open. */
function beginsReply({ type, side, record }: StoredRecord): boolean {
  if (side) return false;
  const { role } = (record["message"] ?? {}) as { readonly role?: unknown };
  return type !== "message" || role !== "toolResult";
}
