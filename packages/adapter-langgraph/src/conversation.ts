import type { AppendDraft, RecordDraft } from "@throughline/core";
import { isFields, parsedFields, type Fields } from "@throughline/core/internal";
import { langchainMessages, liveNote, type LivePlace, removedTypeOf } from "@throughline/foreign-formats/internal";
import { listDifference } from "./list-difference.ts";
import type { ThreadIndex } from "./thread-index.ts";
import { messageIdOf } from "./values.ts";

export interface SpokenMessage {
  readonly text: string;
  /**
   * Holds the id of the record whose source is this message. It is null for a message that another program wrote or
   * that was synthesized.
   */
  readonly holderId: string | null;
  readonly recordIds: readonly string[];
}

export interface ConversationChange {
  readonly drafts: readonly AppendDraft[];
  readonly headId: string | null;
  /** Maps each message of the new conversation to its index in the old one, or to the id of its record. */
  readonly messages: readonly (number | string)[];
}

interface Change {
  readonly before: readonly SpokenMessage[];
  readonly after: readonly string[];
  readonly place: LivePlace;
  readonly index: ThreadIndex;
}

/**
 * Builds the drafts that turn one conversation into another: appended messages, and edits for replaced or removed ones.
 * The log cannot reorder messages, so a reordered conversation is written again behind a reset.
 */
export function changeConversation({ before, after, place, index }: Change): ConversationChange {
  const plan = planOf(before, after);
  if (plan === null) return writtenAgain(after, place, index);
  const writer = new ConversationWriter(place, index);
  const replaced = new Map<number, string>();
  for (const { at, by } of plan.replaced) {
    const edit = writer.replace(before[at] as SpokenMessage, after[by] as string);
    if (edit === null) return writtenAgain(after, place, index);
    replaced.set(by, edit);
  }
  writer.remove(plan.removed.map((at) => before[at] as SpokenMessage));
  const fresh = [...after.keys()].filter((by) => plan.places[by] === null && !replaced.has(by));
  const added = writer.append(fresh.map((by) => after[by] as string));
  const recordIds = new Map(fresh.map((by, at) => [by, added[at] as string]));
  const messages = plan.places.map((at, by) => at ?? replaced.get(by) ?? (recordIds.get(by) as string));
  return { drafts: writer.drafts, headId: writer.headId, messages };
}

function writtenAgain(after: readonly string[], place: LivePlace, index: ThreadIndex): ConversationChange {
  const writer = new ConversationWriter(place, index);
  writer.reset();
  const messages = writer.append(after);
  return { drafts: writer.drafts, headId: writer.headId, messages };
}

interface ConversationPlan {
  /** Holds the index among the earlier messages for each later message; null for a new one. */
  readonly places: readonly (number | null)[];
  readonly replaced: readonly { readonly at: number; readonly by: number }[];
  readonly removed: readonly number[];
}

/** Returns null when a new message would stand before a kept one, because new messages can only be appended. */
function planOf(before: readonly SpokenMessage[], after: readonly string[]): ConversationPlan | null {
  const places: (number | null)[] = [];
  for (const part of listDifference(
    before.map(({ text }) => text),
    after,
  ))
    if ("added" in part) places.push(null);
    else for (let at = part.from; at < part.from + part.count; at++) places.push(at);
  const replaced: { at: number; by: number }[] = [];
  const kept = new Set(places);
  const lastKept = places.findLastIndex((place) => place !== null);
  let next = 0;
  for (const [by, place] of places.entries()) {
    if (place !== null) {
      next = place + 1;
      continue;
    }
    const at = replacedBy(before, next, kept, after[by] as string);
    if (at !== null) {
      replaced.push({ at, by });
      next = at + 1;
    } else if (by < lastKept) return null;
  }
  const gone = new Set(replaced.map(({ at }) => at));
  const removed = [...before.keys()].filter((at) => !kept.has(at) && !gone.has(at));
  // Edits keep their position and new messages are appended, so a replaced message cannot come behind a new one.
  const firstNew = places.findIndex((place, by) => place === null && !replaced.some((one) => one.by === by));
  return firstNew >= 0 && replaced.some(({ by }) => by > firstNew) ? null : { places, replaced, removed };
}

/**
 * Finds the earlier message with the same id. The search stops at the next kept message, because order must not change.
 */
function replacedBy(
  before: readonly SpokenMessage[],
  from: number,
  kept: ReadonlySet<number | null>,
  text: string,
): number | null {
  const id = messageIdOf(parsedFields(text));
  if (id === null) return null;
  for (let at = from; at < before.length && !kept.has(at); at++)
    if (messageIdOf(parsedFields((before[at] as SpokenMessage).text)) === id) return at;
  return null;
}

class ConversationWriter {
  readonly drafts: AppendDraft[] = [];
  headId: string | null;
  readonly #place: LivePlace;
  readonly #index: ThreadIndex;

  constructor(place: LivePlace, index: ThreadIndex) {
    this.#place = place;
    this.#index = index;
    this.headId = place.headId;
  }

  /** The reset ends the conversation before it; the messages after it are the whole new conversation. */
  reset(): void {
    this.#add({ type: "reset", reason: "langgraph.replaced" });
  }

  append(texts: readonly string[]): readonly string[] {
    const items = texts.map((text) => parsedFields(text) ?? {});
    const made = langchainMessages.drafts(items, { ...this.#place, headId: this.headId });
    return made.map(({ item, drafts, recordId, headId }) => {
      const [first, ...more] = drafts as readonly [{ source: string; record: RecordDraft }, ...AppendDraft[]];
      this.drafts.push({ source: first.source, record: { ...first.record, ...this.#repeats(item) } }, ...more);
      this.headId = headId;
      return recordId;
    });
  }

  /** Edits a message in place. Returns null when an edit cannot express the change, for example for another role. */
  replace({ recordIds }: SpokenMessage, text: string): string | null {
    const [targetId, ...others] = recordIds;
    const target = targetId === undefined ? undefined : this.#index.record(targetId);
    const item = parsedFields(text) ?? {};
    const [made] = langchainMessages.drafts([item], this.#place);
    const record = (made?.drafts[0] as { record: RecordDraft } | undefined)?.record;
    const [old, next] = [target?.record["message"], record?.["message"]];
    const isOne = others.length === 0 && made?.drafts.length === 1 && target?.side === false;
    if (!isOne || !isFields(old) || !isFields(next) || old["role"] !== next["role"]) return null;
    const edit = { type: "context_edit", targetId, replacement: { content: next["content"] } };
    return this.#add({ ...edit, sourceFormat: "langgraph", ...this.#repeats(item) }, text);
  }

  /** Removes messages by edits. An edit cannot target a record beside the conversation, so a note lists these. */
  remove(messages: readonly SpokenMessage[]): void {
    const sideIds: string[] = [];
    for (const id of messages.flatMap(({ recordIds }) => recordIds)) {
      if (this.#index.record(id)?.side !== false) sideIds.push(id);
      else this.#add({ type: "context_edit", targetId: id, replacement: null });
    }
    if (sideIds.length > 0) {
      const place = { ...this.#place, headId: this.headId };
      this.drafts.push(liveNote(removedTypeOf("langgraph"), { ids: sideIds }, place));
    }
  }

  #add(body: { readonly type: string } & Fields, source?: string): string {
    const { nextId, timestamp } = this.#place;
    const record: RecordDraft = { ...body, id: nextId(), parentId: this.headId, timestamp };
    this.drafts.push(source === undefined ? record : { source, record });
    this.headId = record.id as string;
    return this.headId;
  }

  /** Names the records with the same message, so that a redaction of one also reaches the others. */
  #repeats(item: Fields): Fields {
    const id = messageIdOf(item);
    if (id === null) return {};
    const { records, copies } = this.#index.mentionsOf(id);
    return {
      ...(records.length === 0 ? {} : { copies: [...records] }),
      ...(copies.length === 0 ? {} : { copiedIn: [...copies] }),
    };
  }
}
