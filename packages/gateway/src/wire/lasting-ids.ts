import type { UnitDraft } from "./unit-drafts.ts";
import type { WireNode } from "./wire-node.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Matches the id that the message reader gives to a call without an id: its position in the reply. */
const placeId = /^call_([1-9][0-9]{0,3})$/;

/**
 * Gives calls without ids, and their results, ids that are unique in the session. A result takes the id of the call at
 * the same position in the previous reply.
 */
export function withLastingIds(
  drafts: readonly UnitDraft[],
  hash: string,
  parent: WireNode | null,
): readonly UnitDraft[] {
  return drafts.map((draft) => {
    if (!("message" in draft)) return draft;
    const { message } = draft;
    if (message.role === "toolResult") {
      const id = callIds(parent)[placeOf(message["toolCallId"])];
      return id === undefined ? draft : ({ ...draft, message: { ...message, toolCallId: id } } as UnitDraft);
    }
    if (message.role !== "assistant" || !Array.isArray(message.content)) return draft;
    const content = (message.content as readonly Fields[]).map((block) =>
      block["type"] === "toolCall" && placeOf(block["id"]) >= 0
        ? { ...block, id: `call_${hash.slice(0, 12)}_${placeOf(block["id"]) + 1}` }
        : block,
    );
    // The cast is safe, because only the ids of the blocks change.
    return { ...draft, message: { ...message, content } } as unknown as UnitDraft;
  });
}

function placeOf(id: unknown): number {
  return Number(placeId.exec(String(id))?.[1] ?? 0) - 1;
}

/** Returns the call ids of the newest reply, in order, because results refer to calls by position. */
function callIds(parent: WireNode | null): readonly string[] {
  let node = parent;
  while (node !== null && !node.isReply) node = node.parent;
  const blocks = (node?.contents ?? []).flatMap(
    (content) => (content as { readonly content?: readonly Fields[] } | null)?.content ?? [],
  );
  return blocks
    .filter((block) => typeof block === "object" && block["type"] === "toolCall")
    .map((block) => String(block["id"]));
}
