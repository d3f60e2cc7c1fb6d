import { type DeliveryContext, mergeEntry, setBlobsAside, updateEntry } from "@throughline/core/internal";
import { type InboundMessage, recordInbound, updateRoute } from "./inbound-message.ts";
import { type SessionEntry } from "@throughline/core";
import { agentOf, hasBlobs, refOf, wholeEntry, type CompatContext } from "./compat-context.ts";

/** An inbound message as OpenClaw's channels hand it over; `InboundMessage`'s own names are understood too. */
interface InboundContext extends InboundMessage {
  /** The service that delivered the message, where `provider` is absent. */
  readonly Provider?: string;
  /** The interface that the message was written in, where `surface` is absent. */
  readonly Surface?: string;
  /** The channel that the message came by, where `channel` is absent. */
  readonly OriginatingChannel?: string;
  /** The address that replies go to, where `to` is absent; comes before `To`. */
  readonly OriginatingTo?: string;
  /** The kind of conversation, such as `direct` or `group`, where `chatType` is absent. */
  readonly ChatType?: string;
  /** The sender's address, where `from` is absent. */
  readonly From?: string;
  /** The address that the message was sent to, where `to` and `OriginatingTo` are absent. */
  readonly To?: string;
  /** The account that received the message, where `accountId` is absent. */
  readonly AccountId?: string;
  /** The thread of the message, where `threadId` is absent. */
  readonly MessageThreadId?: string | number;
  /** What the conversation is called, where `label` is absent. */
  readonly ConversationLabel?: string;
  /** The sender's name; labels the session where nothing else does. */
  readonly SenderName?: string;
  /** The name of the group, where `subject` is absent. */
  readonly GroupSubject?: string;
  /** The channel within the group, where `groupChannel` is absent. */
  readonly GroupChannel?: string;
  /** The server or workspace of the group, where `space` is absent. */
  readonly GroupSpace?: string;
  readonly [field: string]: unknown;
}

/** The entry that a function reads or changes. */
interface EntryPlace {
  /** The path of the agent's `sessions.json`; a path in no agent's folder means the agent `main`. */
  readonly storePath: string;
  /** The session's key, such as `agent:main:main`. */
  readonly sessionKey: string;
}

/** Parameters of `updateSessionStoreEntry`. */
export interface UpdateEntryParams extends EntryPlace {
  /** Gives the fields to set, of the entry as it is now; null changes nothing. May be asked again when others write. */
  readonly update: (
    entry: SessionEntry,
  ) => Readonly<Record<string, unknown>> | null | Promise<Readonly<Record<string, unknown>> | null>;
}

/** Patches one entry, always from what the store holds now. Null when there is no such session. */
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

/** The group that OpenClaw found a message to be from. */
interface GroupResolution {
  /** The key of the group's session. */
  readonly key?: string;
  /** The channel of the group, where the message names none. */
  readonly channel?: string;
  /** The id of the group. */
  readonly id?: string;
  /** The kind of conversation, where the message names none. */
  readonly chatType?: string;
}

/** Parameters of `recordSessionMetaFromInbound`. */
export interface InboundParams extends EntryPlace {
  /** The message whose origin is stored. */
  readonly ctx: InboundContext;
  /** The group of the message; null for none. @default null */
  readonly groupResolution?: GroupResolution | null;
  /** Creates the session when the key has none; otherwise the function returns null. @default true */
  readonly createIfMissing?: boolean;
}

/** Keeps what a message says of where its session is from. The first one creates the session. */
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

/** Parameters of `updateLastRoute`; fields beside `deliveryContext` win over those in it. */
export interface LastRouteParams extends EntryPlace, DeliveryContext {
  /** The route as one object. @default the fields beside it */
  readonly deliveryContext?: DeliveryContext;
  /** The message whose origin is stored too. @default none */
  readonly ctx?: InboundContext;
  /** The group of the message; null for none. @default null */
  readonly groupResolution?: GroupResolution | null;
}

/** Sets where replies go. A key without a session gets one, as in OpenClaw. */
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
