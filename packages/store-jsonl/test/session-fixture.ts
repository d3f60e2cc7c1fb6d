import type { SessionEvent, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { sessionRef } from "@throughline/core";
import { createJsonlStore, type JsonlStoreOptions } from "@throughline/store-jsonl";

export const mainRef: SessionRef = sessionRef({ key: "agent:main:main" });

export function userDraft(text: string): { readonly type: string; readonly message: unknown } {
  return { type: "message", message: { role: "user", content: text } };
}

/** The texts of all user messages, in order. */
export async function textsOf(store: SessionStore, ref: SessionRef = mainRef): Promise<readonly string[]> {
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref)) records.push(...page.records);
  return records.map(({ record }) => (record["message"] as { content: string }).content);
}

/** A store with one session whose transcript is `s1.jsonl`. */
export async function storeWithSession(root: string, options: Partial<JsonlStoreOptions> = {}): Promise<SessionStore> {
  const store = createJsonlStore({ root, ...options });
  await store.save(mainRef, { sessionId: "s1" }, { ifRevision: null });
  return store;
}

export function transcriptOf(root: string, sessionId = "s1"): string {
  return `${root}/agents/main/sessions/${sessionId}.jsonl`;
}

export function findingCodesOf(events: readonly SessionEvent[]): readonly string[] {
  return events.flatMap((event) => (event.name === "finding" ? [event.finding.code] : []));
}
