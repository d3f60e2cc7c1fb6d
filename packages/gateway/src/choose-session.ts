import { agentOfKey, refused, systemRandom } from "@throughline/core/internal";
import {
  type Conversation,
  knownIn,
  type RunningCalls,
  type SessionChoice,
  type SessionPlace,
  type SessionRequest,
} from "./running-calls.ts";
import { followedReply, isAside, isCompaction, keyPart, namedSession } from "./session-ids.ts";
import type { GatewayScope, SessionLookup } from "./session-lookup.ts";
import { unitIds } from "./wire/index.ts";

/**
 * Resolves the header `throughline-session` to a session key. @throws {ThroughlineError} FORBIDDEN when the token may
 * not name that session
 */
export function sessionOfHeader(
  header: unknown,
  scope: GatewayScope,
  mayWrite: boolean,
  needs: "read" | "write" = "write",
): string | null {
  if (typeof header !== "string" || header === "") return null;
  if (!header.startsWith("agent:")) return keyOf(scope, keyPart(header));
  const isOwn = header.startsWith(keyOf(scope, ""));
  if ((isOwn || mayWrite) && agentOfKey(header) === scope.agentId) return header;
  const message = `The session that throughline-session names is not the token's own, and the token has no scope "${needs}".`;
  throw refused("FORBIDDEN", message, { needs });
}

/** Puts the token id in the key, so that two tokens never share a session by accident. */
export function keyOf({ agentId, tokenId }: GatewayScope, part: string): string {
  return `agent:${agentId}:gateway:direct:${tokenId}-${part}`;
}

/** Names a session by what a request says of itself. */
interface RequestName {
  readonly key: string;
  readonly entry: Readonly<Record<string, unknown>>;
  /** Null leaves open whether the request belongs in the session or beside it. */
  readonly lane: "side" | "agent" | null;
}

/**
 * The sources are in order of certainty: header, product, ids, body. Unreadable requests go into the session that a
 * header names, or else into one session per token.
 */
function nameIn({ scope, headers, split, mayWrite }: SessionRequest): RequestName | null {
  const given = sessionOfHeader(headers["throughline-session"], scope, mayWrite);
  const isUnread = split.unread !== null;
  const named = namedSession(headers, isUnread ? null : split);
  if (isUnread) {
    const key = given ?? keyOf(scope, named === null ? "unread" : keyPart(named.id));
    return { key, entry: {}, lane: "side" };
  }
  if (given !== null)
    return { key: given, entry: { clientSessionId: String(headers["throughline-session"]) }, lane: null };
  if (named === null || named.isShared) return null;
  const key = keyOf(scope, keyPart(named.id));
  const entry = { clientSessionId: named.id };
  if (named.agentId === null && named.parentId === null) return { key, entry, lane: null };
  const child = named.agentId === null ? key : `${key}-${keyPart(named.agentId)}`;
  const spawnedBy = named.parentId === null ? key : keyOf(scope, keyPart(named.parentId));
  return { key: child, entry: { ...entry, spawnedBy }, lane: "agent" };
}

/** Decides whether a request belongs in a named session or beside it. */
function positionIn(main: Conversation, request: SessionRequest): "in" | "compaction" | "beside" {
  const { headers, split } = request;
  const { session, calls } = main;
  // A client may ask for a title before the main agent sends its first request, so the session may be empty.
  if (session?.log.isEmpty !== false && calls.length === 0) return isAside(headers, split) ? "beside" : "in";
  if (hasReply(main, followedReply(split))) return "in";
  const tools =
    session?.log.tools ?? calls.find(({ choice }) => choice.lane === "main")?.request.split.partHash("tools");
  const { known, isAnswered } = knownIn(split, main);
  const isSameAgent = tools != null && split.partHash("tools") === tools;
  // A title request repeats the main agent's question without its tools, so it must not continue the session.
  const isOther = known > 0 && !isAnswered && tools != null && !isSameAgent;
  if (known > 0 && !isOther) return "in";
  // The same tools mean the same agent with a shortened history. Different tools mean a title request or a probe.
  if (!isOther && (isCompaction(headers) || isSameAgent)) return "compaction";
  return "beside";
}

function hasReply({ session, calls }: Conversation, id: string | null): boolean {
  if (id === null) return false;
  return session?.log.reply(id) != null || calls.some(({ ended }) => ended?.reply?.draft?.message.responseId === id);
}

/** Returns the place of a conversation. A session that only running calls know has one place for all of them. */
function placeIn(
  { ref, session, calls }: Conversation,
  { basis, ...more }: Pick<SessionPlace, "basis" | "entry" | "isAnonymous">,
): SessionPlace {
  if (session === null) return calls[0]?.choice.place ?? { key: ref.key, sessionId: null, basis, ...more };
  return { key: ref.key, sessionId: session.sessionId, basis: "known", ...more };
}

/** @param basis the basis of the place if this process does not know the session */
function inNamed(
  { key, entry, lane }: RequestName,
  conversation: Conversation,
  position: ReturnType<typeof positionIn>,
  basis: SessionPlace["basis"],
): SessionChoice {
  const isBeside = position === "beside";
  const place = placeIn(conversation, {
    basis,
    entry: isBeside ? { ...entry, spawnedBy: key } : entry,
    isAnonymous: false,
  });
  return { place, lane: lane ?? (isBeside ? "side" : "main"), isCompaction: position === "compaction" };
}

function inAnonymous(conversation: Conversation, isAnonymous = true): SessionChoice {
  const place = placeIn(conversation, { basis: "known", entry: {}, isAnonymous });
  return { place, lane: "main", isCompaction: false };
}

function inNew(key: string, basis: SessionPlace["basis"]): SessionChoice {
  const place = { key, sessionId: null, basis, entry: {}, isAnonymous: true };
  return { place, lane: "main", isCompaction: false };
}

/** Returns a key for a new session that nothing names. */
export function newKey(scope: GatewayScope): string {
  return keyOf(scope, systemRandom.uuid());
}

/**
 * Chooses a session from what this process knows, without the store. The basis of the place states whether the store
 * has to be asked later.
 *
 * @throws {ThroughlineError} FORBIDDEN
 */
export function chooseFromMemory(request: SessionRequest, running: RunningCalls, lookup: SessionLookup): SessionChoice {
  const { scope, split } = request;
  const name = nameIn(request);
  if (name !== null) {
    const main = running.conversation(scope, name.key);
    const position = name.lane === null ? positionIn(main, request) : "in";
    const side = position === "beside" ? running.conversation(scope, `${name.key}-side`) : main;
    const isKnown = main.session !== null || main.calls.length > 0;
    return inNamed(name, side, position, isKnown ? "known" : "begun");
  }
  const followed = followedReply(split);
  if (followed !== null) {
    const all = running.candidates(scope, lookup.remembered(scope, "response", followed));
    const found = all.find((one) => hasReply(one, followed));
    return found === undefined ? inNew(newKey(scope), "unknown") : inAnonymous(found, false);
  }
  const { first, firstReply } = unitIds(split);
  const replied = firstReply === null ? [] : lookup.remembered(scope, "first-reply", firstReply);
  const alike = first === null ? [] : lookup.remembered(scope, "first-message", first);
  const all = running.candidates(scope, [...replied, ...alike]);
  const found = longest(request, all);
  if (found !== null && (firstReply === null || knownIn(split, found).isAnswered)) return inAnonymous(found);
  const isKnown = all.some((one) => knownIn(split, one).known > 0);
  return inNew(newKey(scope), firstReply !== null ? "unknown" : isKnown ? "known" : "begun");
}

export interface SessionReads {
  /** Returns a session as the store has it now, with the calls that run in it. */
  read(key: string): Promise<Conversation>;
  /** Returns what this process knows of a session. */
  remembered(key: string): Conversation;
  /** Returns whether the session has the call already, because its file was left in the journal. */
  isStored(conversation: Conversation): boolean;
  readonly lookup: SessionLookup;
  /** Whether the choice waits for the note of a reply that another node may be storing. */
  readonly mayWait: boolean;
}

/** Finds the session of a request in the store. Null when a new session begins. */
export async function findInStore(request: SessionRequest, reads: SessionReads): Promise<SessionChoice | null> {
  const name = nameIn(request);
  if (name === null)
    return (
      (await byReply(request, reads)) ?? (await byFirstReply(request, reads)) ?? (await byFirstMessage(request, reads))
    );
  const main = await reads.read(name.key);
  const position = name.lane === null ? positionIn(main, request) : "in";
  return inNamed(name, position === "beside" ? await reads.read(`${name.key}-side`) : main, position, "known");
}

async function byReply(
  { scope, split }: SessionRequest,
  { read, lookup, mayWait }: SessionReads,
): Promise<SessionChoice | null> {
  const id = followedReply(split);
  if (id === null) return null;
  const remembered = lookup.remembered(scope, "response", id);
  const noted = remembered.length > 0 ? remembered : await lookup.find(scope, "response", id);
  const keys = noted.length === 0 && mayWait ? await lookup.awaited(scope, "response", id) : noted;
  for (const key of keys.slice(0, 1)) {
    const conversation = await read(key);
    if (hasReply(conversation, id)) return inAnonymous(conversation, false);
  }
  return null;
}

async function byFirstReply(request: SessionRequest, reads: SessionReads): Promise<SessionChoice | null> {
  const { scope, split } = request;
  const { lookup, mayWait } = reads;
  const { first, firstReply } = unitIds(split);
  if (firstReply === null) return null;
  const among = async (keys: readonly string[]): Promise<Conversation | null> =>
    longest(request, await Promise.all(keys.map((key) => reads.read(key))));
  const found = await among(await lookup.find(scope, "first-reply", firstReply));
  if (found !== null) return inAnonymous(found);
  // A client may send example answers of its own. Their sessions have no reply note, so only the first message finds
  // them.
  const example = first === null ? null : await among(await lookup.find(scope, "first-message", first));
  if (example !== null && knownIn(split, example).isAnswered) return inAnonymous(example);
  const awaited = mayWait ? await among(await lookup.awaited(scope, "first-reply", firstReply)) : null;
  return awaited === null ? null : inAnonymous(awaited);
}

/** Finds an unanswered session with the same start, because the request may be a retry. */
async function byFirstMessage(request: SessionRequest, reads: SessionReads): Promise<SessionChoice | null> {
  const { scope, split } = request;
  const { lookup, remembered, read, isStored } = reads;
  const { first } = unitIds(split);
  const keys = first === null ? [] : await lookup.find(scope, "first-message", first);
  const open = keys.filter((key) => isStored(remembered(key)) || !isOver(request, remembered(key)));
  const conversations = await Promise.all(open.map((key) => read(key)));
  const found = conversations.find(isStored) ?? longest(request, conversations);
  return found === null ? null : inAnonymous(found);
}

/**
 * Returns whether the conversation already continues after every message of the request. Conversations only grow, so
 * this answer never expires and the store is not read.
 */
function isOver(request: SessionRequest, conversation: Conversation): boolean {
  const { known, isFollowed, isAnswered } = knownIn(request.split, conversation);
  return conversation.session !== null && known > 0 && isFollowed && !isAnswered && !isRetry(request, conversation);
}

/**
 * Picks the session that shares the most messages with the request. A session with a shared reply always qualifies. A
 * session that shares only user messages may belong to another conversation. It qualifies when no call has answered it
 * and none is running.
 */
function longest(request: SessionRequest, conversations: readonly Conversation[]): Conversation | null {
  let best: { readonly conversation: Conversation; readonly known: number } | null = null;
  for (const conversation of conversations) {
    const { known, isAnswered, isFollowed } = knownIn(request.split, conversation);
    const isOpen = !isFollowed || isRetry(request, conversation);
    const mayFollow = isAnswered || (isOpen && isLeft(request, conversation));
    if (known > 0 && mayFollow && known > (best?.known ?? 0)) best = { conversation, known };
  }
  return best?.conversation ?? null;
}

/** A question without an ended call may be running in another process, so its session must not be reused. */
function isLeft({ requestSha256 }: SessionRequest, { session, calls }: Conversation): boolean {
  const asked = calls.filter(({ ended }) => ended === null);
  if (asked.length > 0) return asked.every((call) => call.request.requestSha256 === requestSha256);
  return session?.log.hasCalls === true || calls.length > 0;
}

/**
 * Returns whether the same body was sent before without an answer. An answered call with another body means that the
 * session belongs to a different conversation.
 */
function isRetry({ requestSha256 }: SessionRequest, { session, calls }: Conversation): boolean {
  const again = session?.log.callOf(requestSha256) ?? null;
  const isSame = ({ request }: (typeof calls)[number]): boolean => request.requestSha256 === requestSha256;
  const isAnswered = calls.some((call) => call.ended?.outcome === "answered" && !isSame(call));
  if (isAnswered || session?.log.hasAnsweredOther(requestSha256) === true) return false;
  const newest = calls.findLast(isSame);
  return newest === undefined ? again !== null && again.outcome !== "answered" : newest.ended?.outcome !== "answered";
}
