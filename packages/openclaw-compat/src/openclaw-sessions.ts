import type { Clock, RandomSource, SessionEntry, SessionStore } from "@throughline/core";
import {
  resolveDefaultStorePath,
  resolveSessionsDir,
  resolveTranscriptPath,
} from "@throughline/openclaw-format/internal";
import { resolveStorePath } from "@throughline/openclaw-format";
import type { SendAction } from "@throughline/policy";
import type { SendPolicyMode } from "@throughline/policy/internal";
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
  /** @default "" */
  readonly namespace?: string;
  readonly clock: Clock;
  readonly random: RandomSource;
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
  loadSessionStore(storePath: string, options?: LoadSessionStoreOptions): Promise<EntriesByKey>;
  saveSessionStore(storePath: string, store: EntriesByKey): Promise<void>;
  updateSessionStore<Result>(
    storePath: string,
    mutator: (store: EntriesByKey) => Result | Promise<Result>,
    options?: LockOptions,
  ): Promise<Result>;
  updateSessionStoreEntry(params: UpdateEntryParams): Promise<SessionEntry | null>;
  recordSessionMetaFromInbound(params: InboundParams): Promise<SessionEntry | null>;
  updateLastRoute(params: LastRouteParams): Promise<SessionEntry>;
  appendAssistantMessageToSessionTranscript(params: MirrorParams): Promise<MirrorResult>;
  resolveSessionTranscriptPath(sessionId: string, agentId?: string, topicId?: string | number): string;
  resolveDefaultSessionStorePath(agentId?: string): string;
  resolveSessionTranscriptsDirForAgent(agentId?: string): string;
  resolveStorePath(store?: string, options?: { readonly agentId?: string }): string;
  /** @throws {ThroughlineError} CONFIG_INVALID for a policy that cannot be understood */
  resolveSendPolicy(params: SendPolicyParams): SendAction;
  withSessionStoreLock<Result>(
    storePath: string,
    action: () => Promise<Result>,
    options?: LockOptions,
  ): Promise<Result>;
  clearSessionStoreCacheForTest(): void;
}

/** OpenClaw's session functions over a store of ours, whichever it is. */
export function createOpenclawSessions(options: OpenclawSessionsOptions): OpenclawSessions {
  const { store, stateDir, homeDir, namespace = "", clock, random, cacheTtlMs = 45_000 } = options;
  const lockNamespace = namespace === "" ? "openclaw-compat" : `${namespace}.openclaw-compat`;
  const refOfLock = (agentId: string) => ({
    namespace: lockNamespace,
    agentId,
    key: `agent:${agentId}:session-store-lock`,
  });
  const lock = createStoreLock(
    store,
    {
      refOf: refOfLock,
      agentOf: (agentId) => ({ namespace, agentId }),
      owner: options.owner ?? "openclaw-compat",
    },
    { clock, random },
  );
  const { cache = new Map() } = options;
  const context: CompatContext = { store, stateDir, homeDir, namespace, clock, random, lock, cacheTtlMs, cache };
  const forAgent = (agentId: string | undefined) => ({ stateDir, ...(agentId === undefined ? {} : { agentId }) });
  return {
    loadSessionStore: (storePath, given) => loadSessionStore(context, storePath, given),
    saveSessionStore: (storePath, entries) => saveSessionStore(context, storePath, entries),
    updateSessionStore: (storePath, mutator, given) => updateSessionStore(context, storePath, mutator, given),
    updateSessionStoreEntry: (params) => updateSessionStoreEntry(context, params),
    recordSessionMetaFromInbound: (params) => recordSessionMetaFromInbound(context, params),
    updateLastRoute: (params) => updateLastRoute(context, params),
    appendAssistantMessageToSessionTranscript: (params) => appendAssistantMessageToSessionTranscript(context, params),
    resolveSessionTranscriptPath: (sessionId, agentId, topicId) =>
      resolveTranscriptPath({ ...forAgent(agentId), sessionId, ...(topicId === undefined ? {} : { topicId }) }),
    resolveDefaultSessionStorePath: (agentId) => resolveDefaultStorePath(forAgent(agentId)),
    resolveSessionTranscriptsDirForAgent: (agentId) => resolveSessionsDir(forAgent(agentId)),
    resolveStorePath: (path, given = {}) => resolveStorePath(path, { ...forAgent(given.agentId), homeDir }),
    resolveSendPolicy: (params) => resolvePolicy(params, options.sendPolicyMode),
    withSessionStoreLock: (storePath, action, given) => lock.run(agentOf(storePath), action, given),
    clearSessionStoreCacheForTest: () => context.cache.clear(),
  };
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
