import type { RecordDraft, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { interruptedResult } from "./run-tools.ts";
import { WindowFacts } from "./window-facts.ts";

/**
 * Results for calls that provably did not run: a history made of the log would say that they may have. Drafts that name their
 * place in the log, or answer a call themselves, need none.
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

/** What the end of a log says of the calls of its newest reply. Reads back to that reply. */
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

/** A reply, and what leaves no calls of one open. */
function beginsReply({ type, side, record }: StoredRecord): boolean {
  if (side) return false;
  const { role } = (record["message"] ?? {}) as { readonly role?: unknown };
  return type !== "message" || role !== "toolResult";
}
