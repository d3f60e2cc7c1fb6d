import {
  type DeliveryContext,
  type InboundMessage,
  loadExisting,
  recordInbound,
  type SessionEntry,
  updateEntry,
  updateRoute,
} from "@throughline/core";
import { mergeEntry, setBlobsAside } from "@throughline/core/internal";
import { agentOf, hasBlobs, refOf, wholeEntry, type CompatContext } from "./compat-context.ts";

/** An inbound message as OpenClaw's channels hand it over; `InboundMessage`'s own names are understood too. */
interface InboundContext extends InboundMessage {
  readonly Provider?: string;
  readonly Surface?: string;
  readonly OriginatingChannel?: string;
  readonly OriginatingTo?: string;
  readonly ChatType?: string;
  readonly From?: string;
  readonly To?: string;
  readonly AccountId?: string;
  readonly MessageThreadId?: string | number;
  readonly ConversationLabel?: string;
  readonly SenderName?: string;
  readonly GroupSubject?: string;
  readonly GroupChannel?: string;
  readonly GroupSpace?: string;
  readonly [field: string]: unknown;
}

interface EntryPlace {
  readonly storePath: string;
  readonly sessionKey: string;
}

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

export interface InboundParams extends EntryPlace {
  readonly ctx: InboundContext;
  /** @default true */
  readonly createIfMissing?: boolean;
}

/** Keeps what a message says of where its session is from. The first one creates the session. */
export async function recordSessionMetaFromInbound(
  context: CompatContext,
  { storePath, sessionKey, ctx, createIfMissing = true }: InboundParams,
): Promise<SessionEntry | null> {
  const agentId = agentOf(storePath);
  const { store, clock, random } = context;
  const message = readContext(ctx);
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

export interface LastRouteParams extends EntryPlace, DeliveryContext {
  /** @default the fields beside it */
  readonly deliveryContext?: DeliveryContext;
}

/** Sets where replies go. @throws {ThroughlineError} SESSION_NOT_FOUND */
export async function updateLastRoute(
  context: CompatContext,
  { storePath, sessionKey, deliveryContext, channel, to, accountId, threadId }: LastRouteParams,
): Promise<SessionEntry> {
  const agentId = agentOf(storePath);
  const ref = refOf(context, agentId, sessionKey);
  await loadExisting(context.store, ref);
  const stated = Object.entries({ channel, to, accountId, threadId }).filter(([, value]) => value !== undefined);
  const route: DeliveryContext = { ...deliveryContext, ...Object.fromEntries(stated) };
  try {
    return (await updateRoute(context.store, ref, route, { clock: context.clock })).entry;
  } finally {
    context.cache.delete(agentId);
  }
}

function readContext(ctx: InboundContext): InboundMessage {
  const pairs: readonly (readonly [keyof InboundMessage, unknown])[] = [
    ["provider", ctx.provider ?? ctx.Provider],
    ["surface", ctx.surface ?? ctx.Surface],
    ["channel", ctx.channel ?? ctx.OriginatingChannel],
    ["chatType", ctx.chatType ?? ctx.ChatType],
    ["from", ctx.from ?? ctx.From],
    ["to", ctx.to ?? ctx.OriginatingTo ?? ctx.To],
    ["accountId", ctx.accountId ?? ctx.AccountId],
    ["threadId", ctx.threadId ?? ctx.MessageThreadId],
    ["label", ctx.label ?? ctx.ConversationLabel ?? ctx.SenderName],
    ["groupId", ctx.groupId],
    ["subject", ctx.subject ?? ctx.GroupSubject],
    ["groupChannel", ctx.groupChannel ?? ctx.GroupChannel],
    ["space", ctx.space ?? ctx.GroupSpace],
  ];
  return Object.fromEntries(pairs.filter(([, value]) => value !== undefined));
}
