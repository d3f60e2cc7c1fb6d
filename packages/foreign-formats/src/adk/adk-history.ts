import { createHash } from "node:crypto";
import type { AppendDraft, RecordDraft } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import { derivedFromOf, isFields, type Fields } from "@throughline/core/internal";
import type { LiveChange, LivePlace, LiveSession } from "../live/live-format.ts";
import { adkEvents } from "../live/live-formats.ts";

/**
 * Returns the record id of an event. A valid event id is used unchanged, so that a store refuses a second copy. Any
 * other id is hashed.
 */
export function adkRecordId(eventId: unknown): string {
  const text = typeof eventId === "string" ? eventId : JSON.stringify(eventId ?? null);
  if (/^[A-Za-z0-9_-]{6,100}$/.test(text)) return text;
  return `adk-${createHash("sha256").update(Buffer.from(text, "utf16le")).digest("hex").slice(0, 40)}`;
}

/**
 * Returns the drafts that store an event. A stored event with the same id is replaced by edits. An identical event
 * gives no drafts.
 */
export function storeAdkEvent(
  session: LiveSession,
  event: Fields,
  stored: SourcedRecord | undefined,
  place: LivePlace,
): LiveChange {
  const format = adkEvents("");
  if (stored === undefined) {
    const [made] = format.drafts([event], { ...place, nextId: () => adkRecordId(event["id"]) });
    return { drafts: made?.drafts ?? [], headId: made?.headId ?? place.headId };
  }
  const source = JSON.stringify(event);
  const edits = session.records.filter(
    ({ record }) => record["targetId"] === stored.id && record["sourceFormat"] === format.name,
  );
  if ((edits.at(-1) ?? stored).source === source) return { drafts: [], headId: place.headId };
  const [made] = format.drafts([event], place);
  const records = (made?.drafts ?? []).map((draft) => recordOf(draft));
  const old = session.records.filter(({ id, record }) => id === stored.id || derivedFromOf(record)?.id === stored.id);
  let { headId } = place;
  const drafts = old.map(({ id }, at): AppendDraft => {
    const message = records[at]?.["message"];
    const frame = { id: place.nextId(), parentId: headId, timestamp: place.timestamp };
    headId = frame.id;
    const replacement = isFields(message) ? { content: message["content"] } : at === 0 ? { content: [] } : null;
    return { source, record: { type: "context_edit", ...frame, targetId: id, replacement, sourceFormat: format.name } };
  });
  return { drafts, headId };
}

function recordOf(draft: AppendDraft): Fields {
  return ("record" in draft && !("type" in draft) ? draft.record : draft) as RecordDraft;
}
