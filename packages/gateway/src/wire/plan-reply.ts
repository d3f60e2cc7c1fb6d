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

/** Plans the record of the reply to a request. */
export function planReply(log: WireLog, api: WireApi, tip: WireNode | null, reply: ReplyDraft): ReplyPlan {
  // The round trip gives the message the form that a store returns, so that both have the same hash.
  const message = JSON.parse(JSON.stringify(reply.message)) as unknown;
  const hash = chainHash(tip?.hash ?? rootHash, [message], api);
  const id = `m${hash}`;
  const known = log.node(id);
  if (known !== null) return { draft: null, node: known };
  return { draft: { ...reply, id, parentId: tip?.lastId ?? null }, node: new WireNode(tip, id, hash, [message]) };
}
