import {
  applyRoute,
  assertKnownOptions,
  loadExisting,
  mergeEntry,
  optionKinds,
  type OptionTable,
  portKinds,
  statedFields,
  updateEntry,
  withSystemPorts,
} from "@throughline/core/internal";
import type { Clock, RandomSource, SessionEntry, SessionRef, SessionState, SessionStore } from "@throughline/core";
import { openSession } from "@throughline/core";
import type { DeliveryContext, SessionOrigin } from "@throughline/core/internal";

/**
 * Holds the facts that a channel states about an inbound message. Every field may be missing; an empty field is
 * ignored.
 */
export interface InboundMessage {
  /** Names the program or service that delivered the message. */
  readonly provider?: string;
  /** Names the interface on which the message arrived, such as a web chat. */
  readonly surface?: string;
  /** Names the channel, such as `telegram`. */
  readonly channel?: string;
  /** States the kind of conversation: `direct`, `group` or `channel`; `dm` is read as `direct`. */
  readonly chatType?: string;
  /** States the sender's address, as the channel writes it. */
  readonly from?: string;
  /** States the receiver's address, as the channel writes it. */
  readonly to?: string;
  /** Names the account of the agent that received the message. */
  readonly accountId?: string;
  /** Names the thread or topic within the conversation. */
  readonly threadId?: string | number;
  /** States the name of the sender or of the conversation. */
  readonly label?: string;
  /** States the channel's id of the group. */
  readonly groupId?: string;
  /** States the group's subject, as people see it. */
  readonly subject?: string;
  /** Names the channel within the group, such as `#general`. */
  readonly groupChannel?: string;
  /** Names the workspace or server that the group belongs to. */
  readonly space?: string;
}

export function inboundFields(message: InboundMessage, entry: SessionEntry | null): Readonly<Record<string, unknown>> {
  const written: unknown = message.chatType;
  const chatType = typeof written === "string" && written.toLowerCase() === "dm" ? "direct" : message.chatType;
  const { label, provider, surface, from, to, accountId, threadId } = message;
  const stated: SessionOrigin = statedFields({ label, provider, surface, chatType, from, to, accountId, threadId });
  const known: unknown = entry?.origin;
  // Another program may have written a text there, and spreading a text would store its letters as fields.
  const origin = { ...(typeof known === "object" && !Array.isArray(known) ? known : {}), ...stated };
  const { groupId, subject, groupChannel, space, channel } = message;
  const isGroup = chatType === "group" || chatType === "channel";
  const group = isGroup ? statedFields({ groupId, subject, groupChannel, space }) : {};
  const displayName = isGroup ? statedFields({ displayName: subject ?? label }) : {};
  return statedFields({
    ...group,
    // A name that a person gave is not replaced by a name that a channel states.
    ...(entry?.displayName === undefined ? displayName : {}),
    chatType,
    channel,
    origin: Object.keys(origin).length === 0 ? undefined : origin,
  });
}

/** Sets the ports of `recordInbound`, and whether it creates sessions. */
export interface RecordInboundOptions {
  /** Measures the time of the new entry. @default the system's clock */
  readonly clock?: Clock;
  /** Creates the ids of new sessions. @default the system's randomness */
  readonly random?: RandomSource;
  /** Creates a session at its first message. @default true */
  readonly createIfMissing?: boolean;
}

const inboundTable: OptionTable<RecordInboundOptions> = {
  clock: portKinds.clock,
  random: portKinds.random,
  createIfMissing: optionKinds.flag,
};

const routeTable: OptionTable<{ readonly clock?: Clock }> = { clock: portKinds.clock };

/**
 * Stores the facts that an inbound message states about its session. Creates the session at its first message. Returns
 * null when the session does not exist and `createIfMissing` is false. The message is not counted as activity, so
 * `updatedAt` stays.
 * @throws {ThroughlineError} INPUT_INVALID, and what the store throws
 */
export async function recordInbound(
  store: SessionStore,
  ref: SessionRef,
  message: InboundMessage,
  options: RecordInboundOptions = {},
): Promise<SessionState | null> {
  assertKnownOptions<RecordInboundOptions>("recordInbound", options, inboundTable);
  const { clock, random, createIfMissing = true } = withSystemPorts(options);
  if (createIfMissing) {
    const fields = inboundFields(message, null);
    const entry = { ...fields, updatedAt: clock.nowMs() };
    const opened = await openSession(store, ref, { random, entry });
    if (opened.isNew) return opened.state;
  } else if ((await store.load(ref)) === null) return null;
  return updateEntry(store, ref, (entry) => {
    const merged = mergeEntry(entry, inboundFields(message, entry), { nowMs: clock.nowMs(), activity: "preserve" });
    return JSON.stringify(merged) === JSON.stringify(entry) ? entry : merged;
  });
}

/**
 * Sets the route of replies: the delivery context and the last route change in one commit. A new route without a thread
 * removes the old thread.
 * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND
 */
export async function updateRoute(
  store: SessionStore,
  ref: SessionRef,
  route: DeliveryContext,
  options: { readonly clock?: Clock } = {},
): Promise<SessionState> {
  assertKnownOptions("updateRoute", options, routeTable);
  const { clock } = withSystemPorts(options);
  await loadExisting(store, ref);
  return updateEntry(store, ref, (entry) => mergeEntry(applyRoute(entry, route), {}, { nowMs: clock.nowMs() }));
}
