import type { IncomingHttpHeaders } from "node:http";
import type { SessionRef } from "@throughline/core";
import type { EndedCall } from "./call-record.ts";
import { followedReply } from "./session-ids.ts";
import type { KnownSession, SessionLogs } from "./session-logs.ts";
import type { GatewayScope } from "./session-lookup.ts";
import { type ChainMatch, isReplyAt, type ReadReply, replyId, type SplitRequest, unitId } from "./wire/index.ts";

export interface SessionRequest {
  readonly scope: GatewayScope;
  readonly headers: IncomingHttpHeaders;
  readonly split: SplitRequest;
  readonly requestSha256: string;
  /** Whether the token may name every session in its scope, instead of only the sessions that it created. */
  readonly mayWrite: boolean;
}

/** Names the session of one or more running calls. All calls that belong to a new session share one place. */
export interface SessionPlace {
  key: string;
  /** Is null while the session is not created or its id is not known. */
  sessionId: string | null;
  /**
   * `known`: what this process knows decides. `begun`: this process knows nothing of the conversation, so the key is
   * provisional until the store was asked. `unknown`: the request has a history that only the store may know.
   */
  basis: "known" | "begun" | "unknown";
  /** Holds the fields of the entry of a new session. */
  entry: Readonly<Record<string, unknown>>;
  /** Is true when no header or id names the session, so that only its messages identify it. */
  isAnonymous: boolean;
}

/** States the session of a call and its position there. */
export interface SessionChoice {
  readonly place: SessionPlace;
  readonly lane: "main" | "side" | "agent";
  /** Is true for a request with a history that its client has shortened. */
  readonly isCompaction: boolean;
}

/** States how much of a request a log or a running call has. */
export interface KnownPart {
  /** Counts the leading messages of the request. */
  readonly known: number;
  /** Is true when one of these messages is a reply. */
  readonly isAnswered: boolean;
  /** Is true when another message or a reply already follows the last of them. */
  readonly isFollowed: boolean;
}

/** Names the record of a call, and counts the earlier attempts with the same body. */
export interface CallIdentity {
  readonly callId: string;
  readonly attempt: number;
}

/** Is a call from its request until the store has it, or until it waits in the journal. */
export interface RunningCall {
  readonly request: SessionRequest;
  readonly recordId: string;
  choice: SessionChoice;
  /** Keeps the last match with the log of the session, so that the next match does not start over. */
  match: ChainMatch | null;
  /** Is the running call with the same body that this one repeats. */
  readonly repeats: RunningCall | null;
  /** Is null until the call is stored. */
  identity: CallIdentity | null;
  /** Is null while the answer has not ended. */
  ended: { readonly outcome: EndedCall["outcome"]; readonly reply: ReadReply | null } | null;
  /** Is true when its session was purged while it ran, so that the call must not bring it back. */
  isPurged: boolean;
  /** Whether the call may go to another session if its own is gone, because it was gone before the request. */
  mayMove: boolean;
}

/** Holds what this process knows of a session: its log, and the calls in it that the store does not have yet. */
export interface Conversation {
  readonly ref: SessionRef;
  readonly session: KnownSession | null;
  readonly calls: readonly RunningCall[];
}

/**
 * Holds the calls that run. A client may ask again before its last call is stored, and an agent asks for a title while
 * its first call runs. Both belong beside that call.
 */
export class RunningCalls {
  readonly #logs: SessionLogs;
  readonly #byScope = new Map<string, Set<RunningCall>>();

  constructor(logs: SessionLogs) {
    this.#logs = logs;
  }

  add(call: RunningCall): void {
    const name = JSON.stringify(call.request.scope);
    this.#byScope.set(name, (this.#byScope.get(name) ?? new Set()).add(call));
  }

  delete(call: RunningCall): void {
    const name = JSON.stringify(call.request.scope);
    const calls = this.#byScope.get(name);
    calls?.delete(call);
    if (calls?.size === 0) this.#byScope.delete(name);
  }

  /** Notes that a session was purged, so that no call that runs in it recreates it. */
  purge({ namespace, agentId, key }: SessionRef): void {
    for (const call of [...this.#byScope.values()].flatMap((calls) => [...calls])) {
      const { scope } = call.request;
      const isSame = scope.namespace === namespace && scope.agentId === agentId && call.choice.place.key === key;
      if (isSame) call.isPurged = true;
    }
  }

  /** Lists the calls of a token in the order of their requests. */
  of(scope: GatewayScope): readonly RunningCall[] {
    return [...(this.#byScope.get(JSON.stringify(scope)) ?? [])];
  }

  /** Returns the sessions with these keys, and those in which calls of conversations without a name run. */
  candidates(scope: GatewayScope, keys: readonly string[]): readonly Conversation[] {
    const calls = Map.groupBy(this.of(scope), ({ choice }) => choice.place.key);
    const unnamed = [...calls].flatMap(([key, own]) =>
      own.some(({ choice }) => choice.place.isAnonymous) ? [key] : [],
    );
    return [...new Set([...keys, ...unnamed])].map((key) => this.#conversation(scope, key, calls.get(key) ?? []));
  }

  /** @param before the call whose session is being chosen: only earlier calls count. Null for a new call */
  conversation(scope: GatewayScope, key: string, before: RunningCall | null = null): Conversation {
    const all = this.of(scope);
    const earlier = before === null ? all : all.slice(0, Math.max(0, all.indexOf(before)));
    return this.#conversation(
      scope,
      key,
      earlier.filter(({ choice }) => choice.place.key === key),
    );
  }

  #conversation({ namespace, agentId }: GatewayScope, key: string, calls: readonly RunningCall[]): Conversation {
    const ref = { namespace, agentId, key };
    return { ref, session: this.#logs.remembered(ref), calls };
  }
}

/** Returns how much of a request a conversation has. */
export function knownIn(split: SplitRequest, { session, calls }: Conversation): KnownPart {
  const match = session?.log.match(split) ?? null;
  const parts: KnownPart[] = calls.map((call) => knownInCall(split, call));
  if (match !== null)
    parts.push({
      known: match.known,
      isAnswered: match.nodes.some(({ isReply }) => isReply),
      isFollowed: (match.node?.children.length ?? 0) > 0,
    });
  const known = Math.max(0, ...parts.map((part) => part.known));
  const longest = parts.filter((part) => part.known === known);
  return {
    known,
    isAnswered: longest.some(({ isAnswered }) => isAnswered),
    isFollowed: longest.some(({ isFollowed }) => isFollowed),
  };
}

/** Compares a request with the request of a call and its reply. Equal texts are the same message without a hash. */
function knownInCall(split: SplitRequest, { request, match, ended }: RunningCall): KnownPart {
  const own = request.split;
  // Messages behind a reply that is named by its id are no beginning of a conversation.
  if (followedReply(own) !== null) return { known: 0, isAnswered: false, isFollowed: false };
  let known = 0;
  let before: { readonly hash: string } | null = null;
  for (const [index, unit] of own.units.entries()) {
    const asked = split.units[index];
    if (asked === undefined) break;
    const id: string = match?.nodes[index]?.id ?? unitId(own, index, before);
    if (asked.text !== unit.text && unitId(split, index, before) !== id) break;
    known += 1;
    before = { hash: id.slice(1) };
  }
  const draft = known === own.units.length ? (ended?.reply?.draft ?? null) : null;
  const isWhole = draft !== null && known < split.units.length;
  if (isWhole && unitId(split, known, before) === replyId(own.api, before, draft)) known += 1;
  const length = own.units.length + (ended?.reply?.draft == null ? 0 : 1);
  return {
    known,
    isAnswered: known > own.units.length || own.units.slice(0, known).some((_, index) => isReplyAt(own, index)),
    isFollowed: known < length,
  };
}
