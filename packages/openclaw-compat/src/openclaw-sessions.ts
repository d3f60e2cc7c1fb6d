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

/** Holds the options of `createOpenclawSessions`. */
export interface OpenclawSessionsOptions {
  /**
   * Sets the store that holds the sessions of every agent. A path that a function takes only names the agent; no file
   * is opened.
   */
  readonly store: SessionStore;
  /** States the directory that holds `agents`, for the paths that the functions return. */
  readonly stateDir: string;
  /** States the directory that replaces a leading `~`. */
  readonly homeDir: string;
  /** Names the namespace of the sessions in the store. @default "" */
  readonly namespace?: string | undefined;
  /** Supplies the time for locks, the cache and entries. @default the system clock */
  readonly clock?: Clock | undefined;
  /** Supplies the randomness for ids of new sessions, locks and appends. @default the system's randomness */
  readonly random?: RandomSource | undefined;
  /** Names the owner of a lock, for people who read the lock. @default "openclaw-compat" */
  readonly owner?: string | undefined;
  /** Sets how long a loaded store may be reused, in milliseconds; 0 switches the cache off. @default 45_000 */
  readonly cacheTtlMs?: number | undefined;
  /** Holds the cache of an earlier instance over the same store, to share it. @default an empty cache */
  readonly cache?: LoadedCache | undefined;
  /** Sets how rules are weighed in a send policy that states no mode. @default "first-match" */
  readonly sendPolicyMode?: SendPolicyMode | undefined;
}

/**
 * Holds the functions of OpenClaw's session module by their names. The functions that touch the store are asynchronous
 * here.
 */
export interface OpenclawSessions {
  /** Reads every entry of an agent by session key, from the cache while the store reports no change. */
  loadSessionStore(storePath: string, options?: LoadSessionStoreOptions): Promise<EntriesByKey>;
  /** Replaces every entry of an agent. A session that `store` does not name is archived. */
  saveSessionStore(storePath: string, store: EntriesByKey): Promise<void>;
  /** Changes the entries of an agent under their lock, and returns the result of `mutator`. */
  updateSessionStore<Result>(
    storePath: string,
    mutator: (store: EntriesByKey) => Result | Promise<Result>,
    options?: UpdateStoreOptions,
  ): Promise<Result>;
  /** Changes one entry under the lock. Returns null when the session does not exist. */
  updateSessionStoreEntry(params: UpdateEntryParams): Promise<SessionEntry | null>;
  /** Stores the origin of a message. Returns null when no session exists and none is created. */
  recordSessionMetaFromInbound(params: InboundParams): Promise<SessionEntry | null>;
  /** Stores the address that replies of a session go to. A key without a session gets a new one. */
  updateLastRoute(params: LastRouteParams): Promise<SessionEntry>;
  /** Stores a message that was delivered outside a run. The call waits while a turn runs. */
  appendAssistantMessageToSessionTranscript(params: MirrorParams): Promise<MirrorResult>;
  /** Returns the path of a session's transcript, or of one of its topics. */
  resolveSessionTranscriptPath(sessionId: string, agentId?: string, topicId?: string | number): string;
  /** Returns the path of an agent's `sessions.json`. @default the agent `main` */
  resolveDefaultSessionStorePath(agentId?: string): string;
  /** Returns the folder of an agent's transcripts. @default the agent `main` */
  resolveSessionTranscriptsDirForAgent(agentId?: string): string;
  /**
   * Returns a configured store path with `{agentId}` and a leading `~` replaced. Returns the default path when none is
   * configured.
   */
  resolveStorePath(store?: string, options?: { readonly agentId?: string | undefined }): string;
  /**
   * Returns whether a session may send.
   * @throws {ThroughlineError} CONFIG_INVALID for a policy that is not valid
   */
  resolveSendPolicy(params: SendPolicyParams): SendAction;
  /** Runs an action while no other holder has the lock of the agent's sessions. */
  withSessionStoreLock<Result>(
    storePath: string,
    action: () => Promise<Result>,
    options?: LockOptions,
  ): Promise<Result>;
  /** Clears the cache of `loadSessionStore`. */
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
 * Creates OpenClaw's session functions over any Throughline store.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option; each function throws it for a parameter that it does not
 * have
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

/** The lock's session has a namespace of its own, so that a list of the agent's namespace does not show it. */
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
 * Returns the cache's lifetime in milliseconds from `THROUGHLINE_SESSION_CACHE_TTL_MS`, else from
 * `OPENCLAW_SESSION_CACHE_TTL_MS`. A value that is not a number of at least 0 gives the default of 45,000.
 */
export function cacheTtlFrom(environment: Readonly<Record<string, string | undefined>>): number {
  const { THROUGHLINE_SESSION_CACHE_TTL_MS: own, OPENCLAW_SESSION_CACHE_TTL_MS: theirs } = environment;
  const text = [own, theirs].map((value) => value?.trim() ?? "").find((value) => value !== "") ?? "";
  const stated = text === "" ? Number.NaN : Number(text);
  return Number.isFinite(stated) && stated >= 0 ? stated : 45_000;
}
