import type { AppendDraft, SessionEvent, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { sessionRef } from "@throughline/core";
import { createJsonlStore, type JsonlStoreOptions } from "@throughline/store-jsonl";

export const mainRef: SessionRef = sessionRef({ key: "agent:main:main" });

export function userDraft(text: string): { readonly type: string; readonly message: unknown } {
  return { type: "message", message: { role: "user", content: text } };
}

/** The header of another program's transcript as an import appends it: it takes the place of ours. */
export function importedHeader(): AppendDraft {
  const timestamp = "2026-01-02T03:04:05.006Z";
  const header = { type: "session", version: 3, id: "old", timestamp, cwd: "/x" };
  const record = {
    type: "session",
    id: "header:old",
    parentId: null,
    timestamp,
    sessionId: "old",
    version: 3,
    cwd: "/x",
  };
  return { source: JSON.stringify(header), record };
}

/** The texts of all user messages, in order. */
export async function textsOf(store: SessionStore, ref: SessionRef = mainRef): Promise<readonly string[]> {
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref)) records.push(...page.records);
  return records.map(({ record }) => (record["message"] as { content: string }).content);
}

/** The texts of messages, and of records that stand for no record the reason for it. */
export async function kindsOf(store: SessionStore, ref: SessionRef = mainRef): Promise<readonly string[]> {
  const kinds: string[] = [];
  for await (const { records } of store.read(ref))
    for (const { record } of records) {
      const { message, data } = record as { message?: { content: string }; data?: { reason: string } };
      kinds.push(message?.content ?? data?.reason ?? record.type);
    }
  return kinds;
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
