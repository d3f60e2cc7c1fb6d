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

/** What a channel knows of a message that came in. Every field may be missing; an empty one says nothing. */
export interface InboundMessage {
  /** The program or service that delivered the message. */
  readonly provider?: string;
  /** The interface on which it arrived, such as a web chat. */
  readonly surface?: string;
  /** The channel, such as `telegram`. */
  readonly channel?: string;
  /** `direct`, `group` or `channel`; `dm` is read as `direct`. */
  readonly chatType?: string;
  /** The sender's address, as the channel writes it. */
  readonly from?: string;
  /** The receiver's address, as the channel writes it. */
  readonly to?: string;
  /** The account of the agent that received it. */
  readonly accountId?: string;
  /** The thread or topic within the conversation. */
  readonly threadId?: string | number;
  /** The sender's or conversation's name. */
  readonly label?: string;
  /** The channel's id of the group. */
  readonly groupId?: string;
  /** The group's subject, as people see it. */
  readonly subject?: string;
  /** The channel within the group, such as `#general`. */
  readonly groupChannel?: string;
  /** The workspace or server that the group belongs to. */
  readonly space?: string;
}

/** The fields of an entry that a message states: its origin, and what group it came from. */
export function inboundFields(message: InboundMessage, entry: SessionEntry | null): Readonly<Record<string, unknown>> {
  const written: unknown = message.chatType;
  const chatType = typeof written === "string" && written.toLowerCase() === "dm" ? "direct" : message.chatType;
  const { label, provider, surface, from, to, accountId, threadId } = message;
  const stated: SessionOrigin = statedFields({ label, provider, surface, chatType, from, to, accountId, threadId });
  const known: unknown = entry?.origin;
  // Another program may have written a text there, which would come apart into its letters.
  const origin = { ...(typeof known === "object" && !Array.isArray(known) ? known : {}), ...stated };
  const { groupId, subject, groupChannel, space, channel } = message;
  const isGroup = chatType === "group" || chatType === "channel";
  const group = isGroup ? statedFields({ groupId, subject, groupChannel, space }) : {};
  const displayName = isGroup ? statedFields({ displayName: subject ?? label }) : {};
  return statedFields({
    ...group,
    // A name somebody gave is not replaced by one a channel states.
    ...(entry?.displayName === undefined ? displayName : {}),
    chatType,
    channel,
    origin: Object.keys(origin).length === 0 ? undefined : origin,
  });
}

/** Options of `recordInbound`. */
export interface RecordInboundOptions {
  /** The time of the new entry. @default the system's clock */
  readonly clock?: Clock;
  /** Makes the ids of new sessions. @default the system's randomness */
  readonly random?: RandomSource;
  /** Whether a session is created at its first message. @default true */
  readonly createIfMissing?: boolean;
}

const inboundTable: OptionTable<RecordInboundOptions> = {
  clock: portKinds.clock,
  random: portKinds.random,
  createIfMissing: optionKinds.flag,
};

const routeTable: OptionTable<{ readonly clock?: Clock }> = { clock: portKinds.clock };

/**
 * Keeps what an inbound message says of its session. Creates the session at its first message. Null when there is none
 * and none was to be created. It describes and is no activity: `updatedAt` stays.
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
 * Sets where replies go: delivery context and last route in one commit; a route without a thread leaves the old one.
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
