// Functions that the packages of Throughline share. They may change in any release and are not public.
export type { CompactedHistory } from "./exchange-data.ts";
export { planCall, planFrame, planRebuiltFrame } from "./plan-call.ts";
export type { CallPlan, KnownText } from "./plan-call.ts";
export { planReply, replyId } from "./plan-reply.ts";
export type { ReplyPlan } from "./plan-reply.ts";
export { readEvents } from "./read-events.ts";
export { readReply } from "./read-reply.ts";
export type { ReadReply } from "./read-reply.ts";
export { messageDrafts, requestMessages, withMember, withoutMembers } from "./request-messages.ts";
export { endOfString } from "./scan-json.ts";
export { bodyText, splitRequest } from "./split-request.ts";
export type { SplitRequest } from "./split-request.ts";
export { unreadRequest } from "./unread-request.ts";
export type { WireApi } from "./wire-api.ts";
export { WireLog, chainIds, isReplyAt, unitId, unitIds } from "./wire-log.ts";
export type { ChainMatch } from "./wire-log.ts";
export type { WireNode } from "./wire-node.ts";
