import { type DeliveryContext, mergeEntry, setBlobsAside, updateEntry } from "@throughline/core/internal";
import { type InboundMessage, recordInbound, updateRoute } from "./inbound-message.ts";
import type { SessionEntry } from "@throughline/core";
import { agentOf, hasBlobs, refOf, wholeEntry, type CompatContext } from "./compat-context.ts";

/**
 * Describes an inbound message as OpenClaw's channels pass it. The field names of `InboundMessage` are accepted too and
 * take precedence.
 */
interface InboundContext extends InboundMessage {
  /** Names the service that delivered the message, when `provider` is absent. */
  readonly Provider?: string;
  /** Names the interface that the message was written in, when `surface` is absent. */
  readonly Surface?: string;
  /** Names the channel that delivered the message, when `channel` is absent. */
  readonly OriginatingChannel?: string;
  /** States the address that replies go to, when `to` is absent. It takes precedence over `To`. */
  readonly OriginatingTo?: string;
  /** Names the kind of conversation, such as `direct` or `group`, when `chatType` is absent. */
  readonly ChatType?: string;
  /** States the sender's address, when `from` is absent. */
  readonly From?: string;
  /** States the address that the message was sent to, when `to` and `OriginatingTo` are absent. */
  readonly To?: string;
  /** Names the account that received the message, when `accountId` is absent. */
  readonly AccountId?: string;
  /** States the thread of the message, when `threadId` is absent. */
  readonly MessageThreadId?: string | number;
  /** States the name of the conversation, when `label` is absent. */
  readonly ConversationLabel?: string;
  /** States the sender's name. It labels the session when no other label is present. */
  readonly SenderName?: string;
  /** States the name of the group, when `subject` is absent. */
  readonly GroupSubject?: string;
  /** Names the channel within the group, when `groupChannel` is absent. */
  readonly GroupChannel?: string;
  /** Names the server or workspace of the group, when `space` is absent. */
  readonly GroupSpace?: string;
  readonly [field: string]: unknown;
}

/** Identifies the entry that a function reads or changes. */
interface EntryPlace {
  /** States the path of the agent's `sessions.json`. A path outside any agent's folder means the agent `main`. */
  readonly storePath: string;
  /** States the session's key, such as `agent:main:main`. */
  readonly sessionKey: string;
}

/** Holds the parameters of `updateSessionStoreEntry`. */
export interface UpdateEntryParams extends EntryPlace {
  /** Returns the fields to set for the current entry; null changes nothing. */
  readonly update: (
    entry: SessionEntry,
  ) => Readonly<Record<string, unknown>> | null | Promise<Readonly<Record<string, unknown>> | null>;
}

/** Patches one entry, always from the state that the store holds now. Returns null when the session does not exist. */
export async function updateSessionStoreEntry(
  context: CompatContext,
  { storePath, sessionKey, update }: UpdateEntryParams,
): Promise<SessionEntry | null> {
  const agentId = agentOf(storePath);
  const ref = refOf(context, agentId, sessionKey);
  return context.lock.run(agentId, async () => {
    const state = await context.store.load(ref);
    if (state === null) return null;
    const patch = await update(await wholeEntry(context, state));
    if (patch === null || Object.keys(patch).length === 0) return wholeEntry(context, state);
    try {
      const patched = await updateEntry(context.store, ref, (current) =>
        mergeEntry(current, patch, { nowMs: context.clock.nowMs() }),
      );
      return await wholeEntry(context, hasBlobs(patched.entry) ? await setBlobsAside(context.store, ref) : patched);
    } finally {
      context.cache.delete(agentId);
    }
  });
}

/** Describes the group that OpenClaw resolved for a message. */
interface GroupResolution {
  /** States the key of the group's session. */
  readonly key?: string;
  /** Names the channel of the group, when the message states none. */
  readonly channel?: string;
  /** States the id of the group. */
  readonly id?: string;
  /** Names the kind of conversation, when the message states none. */
  readonly chatType?: string;
}

/** Holds the parameters of `recordSessionMetaFromInbound`. */
export interface InboundParams extends EntryPlace {
  /** Holds the message whose origin is stored. */
  readonly ctx: InboundContext;
  /** Describes the group of the message; null for none. @default null */
  readonly groupResolution?: GroupResolution | null;
  /** Creates the session when the key has none. When false, the function returns null instead. @default true */
  readonly createIfMissing?: boolean;
}

/** Stores the origin of a message in its session's entry. The first message creates the session. */
export async function recordSessionMetaFromInbound(
  context: CompatContext,
  { storePath, sessionKey, ctx, groupResolution = null, createIfMissing = true }: InboundParams,
): Promise<SessionEntry | null> {
  const agentId = agentOf(storePath);
  const { store, clock, random } = context;
  const message = readContext(ctx, groupResolution);
  try {
    const state = await recordInbound(store, refOf(context, agentId, sessionKey), message, {
      clock,
      random,
      createIfMissing,
    });
    return state?.entry ?? null;
  } finally {
    context.cache.delete(agentId);
  }
}

/** Holds the parameters of `updateLastRoute`. Fields beside `deliveryContext` take precedence over its fields. */
export interface LastRouteParams extends EntryPlace, DeliveryContext {
  /** Holds the route as one object. @default the fields beside it */
  readonly deliveryContext?: DeliveryContext;
  /** Holds a message whose origin is stored too. @default none */
  readonly ctx?: InboundContext;
  /** Describes the group of the message; null for none. @default null */
  readonly groupResolution?: GroupResolution | null;
}

/** Sets the address that replies go to. A key without a session gets a new one, like in OpenClaw. */
export async function updateLastRoute(context: CompatContext, params: LastRouteParams): Promise<SessionEntry> {
  const { storePath, sessionKey, deliveryContext, channel, to, accountId, threadId } = params;
  const { ctx = {}, groupResolution = null } = params;
  const agentId = agentOf(storePath);
  const { store, clock, random } = context;
  const ref = refOf(context, agentId, sessionKey);
  const stated = Object.entries({ channel, to, accountId, threadId }).filter(([, value]) => value !== undefined);
  const route: DeliveryContext = { ...deliveryContext, ...Object.fromEntries(stated) };
  try {
    await recordInbound(store, ref, readContext(ctx, groupResolution), { clock, random });
    return (await updateRoute(store, ref, route, { clock })).entry;
  } finally {
    context.cache.delete(agentId);
  }
}

function readContext(ctx: InboundContext, group: GroupResolution | null): InboundMessage {
  const pairs: readonly (readonly [keyof InboundMessage, unknown])[] = [
    ["provider", ctx.provider ?? ctx.Provider],
    ["surface", ctx.surface ?? ctx.Surface],
    ["channel", ctx.channel ?? ctx.OriginatingChannel ?? group?.channel],
    ["chatType", ctx.chatType ?? ctx.ChatType ?? group?.chatType],
    ["from", ctx.from ?? ctx.From],
    ["to", ctx.to ?? ctx.OriginatingTo ?? ctx.To],
    ["accountId", ctx.accountId ?? ctx.AccountId],
    ["threadId", ctx.threadId ?? ctx.MessageThreadId],
    ["label", ctx.label ?? ctx.ConversationLabel ?? ctx.SenderName],
    ["groupId", ctx.groupId ?? group?.id],
    ["subject", ctx.subject ?? ctx.GroupSubject],
    ["groupChannel", ctx.groupChannel ?? ctx.GroupChannel],
    ["space", ctx.space ?? ctx.GroupSpace],
  ];
  return Object.fromEntries(pairs.filter(([, value]) => value !== undefined));
}
