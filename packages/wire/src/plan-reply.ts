import type { RecordDraft } from "@throughline/core";
import type { ReplyDraft } from "@throughline/core/internal";
import { chainHash, rootHash } from "./message-hash.ts";
import type { WireApi } from "./wire-api.ts";
import type { WireLog } from "./wire-log.ts";
import { WireNode } from "./wire-node.ts";

/** What is to be stored of a reply. */
export interface ReplyPlan {
  /** Null where the log has a reply of the same words at this place. */
  readonly draft: RecordDraft | null;
  /** The message that the reply is: the one in the log, or a new one that is not added to the log yet. */
  readonly node: WireNode;
}

/** Plans what is stored of the reply to a request. */
export function planReply(log: WireLog, api: WireApi, tip: WireNode | null, reply: ReplyDraft): ReplyPlan {
  // As a store gives it back.
  const message = JSON.parse(JSON.stringify(reply.message)) as unknown;
  const hash = chainHash(tip?.hash ?? rootHash, [message], api);
  const id = `m${hash}`;
  const known = log.node(id);
  if (known !== null) return { draft: null, node: known };
  return { draft: { ...reply, id, parentId: tip?.lastId ?? null }, node: new WireNode(tip, id, hash, [message]) };
}
