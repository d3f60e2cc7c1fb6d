import { checkParams } from "./check-params.ts";
import {
  assertKnownOptions,
  optionKinds,
  portKinds,
  withSystemPorts,
  type OptionTable,
} from "@throughline/core/internal";
import type { Clock, RandomSource, SessionEntry, SessionStore } from "@throughline/core";
import {
  resolveDefaultStorePath,
  resolveSessionsDir,
  resolveStorePath,
  resolveTranscriptPath,
} from "@throughline/openclaw-format/internal";
import type { SendAction, SendPolicyMode } from "@throughline/policy/internal";
import { agentOf, type CompatContext, type EntriesByKey, type LoadedCache } from "./compat-context.ts";
import { appendAssistantMessageToSessionTranscript, type MirrorParams, type MirrorResult } from "./mirror-message.ts";
import { resolvePolicy, type SendPolicyParams } from "./resolve-policy.ts";
import {
  recordSessionMetaFromInbound,
  updateLastRoute,
  updateSessionStoreEntry,
  type InboundParams,
  type LastRouteParams,
  type UpdateEntryParams,
} from "./session-entries.ts";
import {
  loadSessionStore,
  saveSessionStore,
  updateSessionStore,
  type LoadSessionStoreOptions,
  type UpdateStoreOptions,
} from "./session-store-file.ts";
import { createStoreLock, type LockOptions } from "./store-lock.ts";

/** Options of `createOpenclawSessions`. */
export interface OpenclawSessionsOptions {
  /** Holds the sessions of every agent; a path of the functions below names the agent and no file. */
  readonly store: SessionStore;
  /** The directory that holds `agents`, for the paths given out. */
  readonly stateDir: string;
  /** What a leading `~` stands for. */
  readonly homeDir: string;
  /** The namespace of the sessions in the store. @default "" */
  readonly namespace?: string;
  /** Times locks, cache and entries. @default the system's clock */
  readonly clock?: Clock;
  /** Makes the ids of new sessions, locks and appends. @default the system's randomness */
  readonly random?: RandomSource;
  /** Who holds a lock, for people. @default "openclaw-compat" */
  readonly owner?: string;
  /** How long a loaded store may come again; 0 switches the cache off. @default 45_000 */
  readonly cacheTtlMs?: number;
  /** What was loaded before, by another of these over the same store. @default nothing */
  readonly cache?: LoadedCache;
  /** How the rules of a send policy are weighed that does not say so itself. @default "first-match" */
  readonly sendPolicyMode?: SendPolicyMode;
}

/** The functions of OpenClaw's session module by their names. Those that touch the store are asynchronous here. */
export interface OpenclawSessions {
  /** Reads every entry of an agent by session key, from the cache while the store reports no change. */
  loadSessionStore(storePath: string, options?: LoadSessionStoreOptions): Promise<EntriesByKey>;
  /** Replaces every entry of an agent; a session that is not among them is archived. */
  saveSessionStore(storePath: string, store: EntriesByKey): Promise<void>;
  /** Changes the entries of an agent under their lock; returns what `mutator` returns. */
  updateSessionStore<Result>(
    storePath: string,
    mutator: (store: EntriesByKey) => Result | Promise<Result>,
    options?: UpdateStoreOptions,
  ): Promise<Result>;
  /** Changes one entry under the lock; null when there is no such session. */
  updateSessionStoreEntry(params: UpdateEntryParams): Promise<SessionEntry | null>;
  /** Stores where a message came from; null when there is no session and none is created. */
  recordSessionMetaFromInbound(params: InboundParams): Promise<SessionEntry | null>;
  /** Stores where the replies of a session go; a key without a session gets one. */
  updateLastRoute(params: LastRouteParams): Promise<SessionEntry>;
  /** Stores a message that was delivered outside a run; waits while a turn runs. */
  appendAssistantMessageToSessionTranscript(params: MirrorParams): Promise<MirrorResult>;
  /** Returns the path of a session's transcript, or of one of its topics. */
  resolveSessionTranscriptPath(sessionId: string, agentId?: string, topicId?: string | number): string;
  /** Returns the path of an agent's `sessions.json`; the agent is `main` by default. */
  resolveDefaultSessionStorePath(agentId?: string): string;
  /** Returns the folder of an agent's transcripts; the agent is `main` by default. */
  resolveSessionTranscriptsDirForAgent(agentId?: string): string;
  /** Returns a configured store path with `{agentId}` and a leading `~` replaced; without one, the default. */
  resolveStorePath(store?: string, options?: { readonly agentId?: string }): string;
  /**
   * Returns whether a session may send.
   * @throws {ThroughlineError} CONFIG_INVALID for a policy that cannot be understood
   */
  resolveSendPolicy(params: SendPolicyParams): SendAction;
  /** Runs an action while no other holder has the lock of the agent's sessions. */
  withSessionStoreLock<Result>(
    storePath: string,
    action: () => Promise<Result>,
    options?: LockOptions,
  ): Promise<Result>;
  /** Forgets what `loadSessionStore` has read. */
  clearSessionStoreCacheForTest(): void;
}

const { filledText, number, object, oneOf, required, text } = optionKinds;
export const sessionsTable: OptionTable<OpenclawSessionsOptions> = {
  store: required(portKinds.store),
  stateDir: required(filledText),
  homeDir: required(text),
  namespace: text,
  clock: portKinds.clock,
  random: portKinds.random,
  owner: filledText,
  cacheTtlMs: number({ min: 0 }),
  cache: object,
  sendPolicyMode: oneOf(["first-match", "deny-overrides"]),
};

/**
 * OpenClaw's session functions over a store of ours, whichever it is.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option; each function too, for a parameter that it does not have
 */
export function createOpenclawSessions(options: OpenclawSessionsOptions): OpenclawSessions {
  assertKnownOptions<OpenclawSessionsOptions>("createOpenclawSessions", options, sessionsTable);
  const { store, stateDir, homeDir, namespace = "", clock, random, cacheTtlMs = 45_000 } = withSystemPorts(options);
  const lock = storeLock(store, { namespace, owner: options.owner ?? "openclaw-compat", ports: { clock, random } });
  const { cache = new Map() } = options;
  const context: CompatContext = { store, stateDir, homeDir, namespace, clock, random, lock, cacheTtlMs, cache };
  const forAgent = (agentId: string | undefined) => ({ stateDir, ...(agentId === undefined ? {} : { agentId }) });
  return {
    async loadSessionStore(storePath, given) {
      checkParams("loadSessionStore", given);
      return loadSessionStore(context, storePath, given);
    },
    saveSessionStore: (storePath, entries) => saveSessionStore(context, storePath, entries),
    async updateSessionStore(storePath, mutator, given) {
      checkParams("updateSessionStore", given);
      return updateSessionStore(context, storePath, mutator, given);
    },
    async updateSessionStoreEntry(params) {
      checkParams("updateSessionStoreEntry", params);
      return updateSessionStoreEntry(context, params);
    },
    async recordSessionMetaFromInbound(params) {
      checkParams("recordSessionMetaFromInbound", params);
      return recordSessionMetaFromInbound(context, params);
    },
    async updateLastRoute(params) {
      checkParams("updateLastRoute", params);
      return updateLastRoute(context, params);
    },
    async appendAssistantMessageToSessionTranscript(params) {
      checkParams("appendAssistantMessageToSessionTranscript", params);
      return appendAssistantMessageToSessionTranscript(context, params);
    },
    resolveSessionTranscriptPath: (sessionId, agentId, topicId) =>
      resolveTranscriptPath({ ...forAgent(agentId), sessionId, ...(topicId === undefined ? {} : { topicId }) }),
    resolveDefaultSessionStorePath: (agentId) => resolveDefaultStorePath(forAgent(agentId)),
    resolveSessionTranscriptsDirForAgent: (agentId) => resolveSessionsDir(forAgent(agentId)),
    resolveStorePath(path, given = {}) {
      checkParams("resolveStorePath", given);
      return resolveStorePath(path, { ...forAgent(given.agentId), homeDir });
    },
    resolveSendPolicy(params) {
      checkParams("resolveSendPolicy", params);
      return resolvePolicy(params, options.sendPolicyMode);
    },
    async withSessionStoreLock(storePath, action, given) {
      checkParams("withSessionStoreLock", given);
      return lock.run(agentOf(storePath), action, given);
    },
    clearSessionStoreCacheForTest: () => context.cache.clear(),
  };
}

/** The lock of each agent's entries. */
function storeLock(
  store: SessionStore,
  given: {
    readonly namespace: string;
    readonly owner: string;
    readonly ports: { readonly clock: Clock; readonly random: RandomSource };
  },
): CompatContext["lock"] {
  const { namespace, owner, ports } = given;
  const lockNamespace = namespace === "" ? "openclaw-compat" : `${namespace}.openclaw-compat`;
  const refOf = (agentId: string) => ({
    namespace: lockNamespace,
    agentId,
    key: `agent:${agentId}:session-store-lock`,
  });
  return createStoreLock(store, { refOf, agentOf: (agentId) => ({ namespace, agentId }), owner }, ports);
}

/**
 * The cache's time as `THROUGHLINE_SESSION_CACHE_TTL_MS` states it, else `OPENCLAW_SESSION_CACHE_TTL_MS`; any other
 * value than a number leaves the default.
 */
export function cacheTtlFrom(environment: Readonly<Record<string, string | undefined>>): number {
  const { THROUGHLINE_SESSION_CACHE_TTL_MS: own, OPENCLAW_SESSION_CACHE_TTL_MS: theirs } = environment;
  const text = [own, theirs].map((value) => value?.trim() ?? "").find((value) => value !== "") ?? "";
  const stated = text === "" ? Number.NaN : Number(text);
  return Number.isFinite(stated) && stated >= 0 ? stated : 45_000;
}
