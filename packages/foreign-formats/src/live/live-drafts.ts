import { type AppendDraft, type RecordDraft, ThroughlineError } from "@throughline/core";
import {
  type Fields,
  isFields,
  isNestedDeeper,
  isSideRecord,
  maxNesting,
  type SourcedRecord,
} from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import { callsOf } from "../mapped-messages.ts";
import type { MessageList } from "../message-list.ts";
import { derivedId, type RecordBody } from "../unit-records.ts";
import type { LiveDrafts, LivePlace } from "./live-format.ts";

/**
 * @throws {ThroughlineError} INPUT_INVALID for an item that JSON cannot represent, RECORD_INVALID for one that is
 * nested too deep
 */
export function liveDrafts(
  name: string,
  list: Pick<MessageList, "element">,
  items: readonly unknown[],
  place: LivePlace,
): readonly LiveDrafts[] {
  const toolNames = new Map<string, string>();
  let headId = place.headId;
  return items.map((item, index) => {
    const source = sourceOf(name, item);
    const value = JSON.parse(source) as Fields;
    // The line names an open reply, so it must be unique across calls.
    const { bodies, id: stated } = list.element(value, { line: place.lastSeq + 1 + index, byteOffset: 0 });
    const id = place.nextId();
    const frame = { timestamp: place.timestamp, sourceFormat: name };
    const drafts: AppendDraft[] = [];
    const add = (body: RecordBody, isSide: boolean): void => {
      const isFirst = drafts.length === 0;
      const own = isFirst ? {} : { derivedFrom: { id, index: drafts.length } };
      const recordId = isFirst ? id : derivedId(id, drafts.length);
      const record: RecordDraft = {
        ...frame,
        ...own,
        ...named(body, toolNames, place),
        id: recordId,
        parentId: headId,
      };
      drafts.push(isFirst ? { source, record } : record);
      if (!isSide) headId = recordId;
    };
    for (const body of bodies) add(body, isSideRecord(body));
    if (bodies.length === 0) add(sideBody(name, value, stated), true);
    return { item: value, drafts: drafts as [AppendDraft, ...AppendDraft[]], recordId: id, headId };
  });
}

/** A record adds nesting levels around an item's content, so an item may have fewer levels than a record. */
const maxItemNesting = maxNesting - 12;

function sourceOf(name: string, item: unknown): string {
  let source: string | undefined;
  try {
    if (isFields(item)) source = JSON.stringify(item);
  } catch (cause) {
    // The item is circular, or holds a value that JSON cannot represent.
    throw invalidItem(name, cause);
  }
  if (source?.startsWith("{") !== true) throw invalidItem(name, undefined);
  if (isNestedDeeper(item, maxItemNesting))
    throw new ThroughlineError("RECORD_INVALID", `An item of ${name} is nested deeper than ${maxItemNesting} levels.`, {
      outcome: "not-applied",
    });
  return source;
}

function invalidItem(name: string, cause: unknown): ThroughlineError {
  return new ThroughlineError("INPUT_INVALID", `An item of ${name} must be an object that JSON can hold.`, {
    outcome: "not-applied",
    ...(cause === undefined ? {} : { cause }),
  });
}

/** A result does not state its tool, so the name comes from the call. */
function named(body: RecordBody, toolNames: Map<string, string>, place: LivePlace): RecordBody {
  const message = body["message"] as Fields | undefined;
  for (const call of callsOf(message?.["content"])) toolNames.set(call.id, call.name);
  if (message?.["role"] !== "toolResult" || message["toolName"] !== undefined) return body;
  const callId = asText(message["toolCallId"]);
  const toolName = toolNames.get(callId) ?? calledTool(place.records ?? [], callId);
  return toolName === undefined ? body : { ...body, message: { ...message, toolName } };
}

/** A model gets no part of such an item, or no reader knows its form. The record's source keeps the whole item. */
function sideBody(name: string, { type, role }: Fields, stated: unknown): RecordBody {
  const kind = asText(type ?? role);
  const isName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(kind);
  const itemId = typeof stated === "string" && stated.length <= 256 ? { data: { itemId: stated } } : {};
  return { type: "custom", customType: `${name}.${isName ? kind : "unknown"}`, appendMode: "side", ...itemId };
}

/** A result follows its call closely, so older records are not searched. */
const farthestCall = 1000;

function calledTool(records: readonly SourcedRecord[], callId: string): string | undefined {
  for (let at = records.length - 1; at >= Math.max(0, records.length - farthestCall); at--) {
    const message = records[at]?.record["message"] as Fields | undefined;
    const call = callsOf(message?.["content"]).find(({ id }) => id === callId);
    if (call !== undefined) return call.name;
  }
  return undefined;
}
