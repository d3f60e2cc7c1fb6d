import type { RecordDraft } from "@throughline/core";
import type { ReplyDraft } from "@throughline/core/internal";
import { chainHash, rootHash } from "./message-hash.ts";
import type { WireApi } from "./wire-api.ts";
import type { WireLog } from "./wire-log.ts";
import { WireNode } from "./wire-node.ts";

/** Describes the record to store for a reply. */
export interface ReplyPlan {
  /** Holds the draft of the reply. Null when the log already has a reply with the same content at this position. */
  readonly draft: RecordDraft | null;
  /** Names the message of the reply. A new message is not yet part of the log. */
  readonly node: WireNode;
}

/** Returns the id of the record of a reply. @param parent the message before the reply */
export function replyId(api: WireApi, parent: Pick<WireNode, "hash"> | null, reply: ReplyDraft): string {
  return `m${chainHash(parent?.hash ?? rootHash, [storedForm(reply)], api)}`;
}

/** The round trip gives the message the form that a store returns, so that both have the same hash. */
function storedForm({ message }: ReplyDraft): unknown {
  return JSON.parse(JSON.stringify(message)) as unknown;
}

/** Plans the record of the reply to a request. */
export function planReply(log: WireLog, api: WireApi, tip: WireNode | null, reply: ReplyDraft): ReplyPlan {
  const id = replyId(api, tip, reply);
  const known = log.node(id);
  if (known !== null) return { draft: null, node: known };
  return {
    draft: { ...reply, id, parentId: tip?.lastId ?? null },
    node: new WireNode(tip, id, id.slice(1), [storedForm(reply)]),
  };
}
