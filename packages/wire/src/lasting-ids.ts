import type { UnitDraft } from "./unit-drafts.ts";
import type { WireNode } from "./wire-node.ts";

type Fields = Readonly<Record<string, unknown>>;

/** How a reader names a call that came without an id: by its place. */
const placeId = /^call_([1-9][0-9]{0,3})$/;

/**
 * Calls that came without ids, and their results, with ids that no other call of the session has. A result has the id of the
 * call at the same place of the reply before it.
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
    // The blocks are those of the message, with other ids.
    return { ...draft, message: { ...message, content } } as unknown as UnitDraft;
  });
}

function placeOf(id: unknown): number {
  return Number(placeId.exec(String(id))?.[1] ?? 0) - 1;
}

/** The ids of the calls in the newest reply. */
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
