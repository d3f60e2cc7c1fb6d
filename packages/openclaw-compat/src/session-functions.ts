import { checkParams } from "./check-params.ts";
import { homedir } from "node:os";
import {
  resolveDefaultStorePath,
  resolveSessionsDir,
  resolveStorePath as resolveConfiguredPath,
  resolveTranscriptPath,
} from "@throughline/openclaw-format/internal";
import type { SendAction } from "@throughline/policy/internal";
import type { OpenclawSessions } from "./openclaw-sessions.ts";
import { resolvePolicy, type SendPolicyParams } from "./resolve-policy.ts";
import { clearCaches, defaultStateDir, inStateDir, stateDirOf } from "./state-directory.ts";

/**
 * This module exports OpenClaw's session functions by name. Each opens the JSONL store of the state directory that its
 * path lies in.
 */

/** Reads the entries of an agent by session key. */
export const loadSessionStore: OpenclawSessions["loadSessionStore"] = async (storePath, options) => {
  checkParams("loadSessionStore", options);
  return inDirectoryOf(storePath, (sessions) => sessions.loadSessionStore(storePath, options));
};

/** Replaces every entry of an agent. A session that `store` does not name is archived. */
export const saveSessionStore: OpenclawSessions["saveSessionStore"] = (storePath, store) =>
  inDirectoryOf(storePath, (sessions) => sessions.saveSessionStore(storePath, store));

/** Changes the entries of an agent under their lock. */
export const updateSessionStore: OpenclawSessions["updateSessionStore"] = async (storePath, mutator, options) => {
  checkParams("updateSessionStore", options);
  return inDirectoryOf(storePath, (sessions) => sessions.updateSessionStore(storePath, mutator, options));
};

/** Runs an action under the lock of an agent's sessions. */
export const withSessionStoreLock: OpenclawSessions["withSessionStoreLock"] = async (storePath, action, options) => {
  checkParams("withSessionStoreLock", options);
  return inDirectoryOf(storePath, (sessions) => sessions.withSessionStoreLock(storePath, action, options));
};

/** Changes one entry under the lock. Returns null when the session does not exist. */
export const updateSessionStoreEntry: OpenclawSessions["updateSessionStoreEntry"] = async (params) => {
  checkParams("updateSessionStoreEntry", params);
  return inDirectoryOf(params.storePath, (sessions) => sessions.updateSessionStoreEntry(params));
};

/**
 * Stores the origin of a message in the entry of its session. Returns null when no session exists and none is created.
 */
export const recordSessionMetaFromInbound: OpenclawSessions["recordSessionMetaFromInbound"] = async (params) => {
  checkParams("recordSessionMetaFromInbound", params);
  return inDirectoryOf(params.storePath, (sessions) => sessions.recordSessionMetaFromInbound(params));
};

/** Stores the last route of a session in its entry. */
export const updateLastRoute: OpenclawSessions["updateLastRoute"] = async (params) => {
  checkParams("updateLastRoute", params);
  return inDirectoryOf(params.storePath, (sessions) => sessions.updateLastRoute(params));
};

/**
 * Stores a message that was delivered outside a run in the session's transcript. The state directory is that of
 * `storePath`, else the default one.
 */
export const appendAssistantMessageToSessionTranscript: OpenclawSessions["appendAssistantMessageToSessionTranscript"] =
  async (params) => {
    checkParams("appendAssistantMessageToSessionTranscript", params);
    const stateDir = params.storePath === undefined ? defaultStateDir() : stateDirOf(params.storePath);
    return inStateDir(stateDir, (sessions) => sessions.appendAssistantMessageToSessionTranscript(params));
  };

/** Returns the path of a session's transcript in the default state directory. */
export function resolveSessionTranscriptPath(sessionId: string, agentId?: string, topicId?: string | number): string {
  return resolveTranscriptPath({ ...inDefault(agentId), sessionId, ...(topicId === undefined ? {} : { topicId }) });
}

/** Returns the path of an agent's `sessions.json` in the default state directory. */
export function resolveDefaultSessionStorePath(agentId?: string): string {
  return resolveDefaultStorePath(inDefault(agentId));
}

/** Returns the folder of an agent's transcripts in the default state directory. */
export function resolveSessionTranscriptsDirForAgent(agentId?: string): string {
  return resolveSessionsDir(inDefault(agentId));
}

/** Returns the path of `sessions.json` for a configured store path. */
export function resolveStorePath(store?: string, options: { readonly agentId?: string | undefined } = {}): string {
  checkParams("resolveStorePath", options);
  return resolveConfiguredPath(store, { ...inDefault(options.agentId), homeDir: homedir() });
}

/**
 * Returns whether a session may send, by the policy of the configuration.
 * @throws {ThroughlineError} CONFIG_INVALID for a policy that is not valid
 */
export function resolveSendPolicy(params: SendPolicyParams): SendAction {
  checkParams("resolveSendPolicy", params);
  return resolvePolicy(params);
}

/** Clears the cache of `loadSessionStore`. */
export function clearSessionStoreCacheForTest(): void {
  clearCaches();
}

async function inDirectoryOf<Result>(
  storePath: string,
  call: (sessions: OpenclawSessions) => Promise<Result>,
): Promise<Result> {
  return inStateDir(stateDirOf(storePath), call);
}

function inDefault(agentId: string | undefined): { readonly stateDir: string; readonly agentId?: string } {
  return { stateDir: defaultStateDir(), ...(agentId === undefined ? {} : { agentId }) };
}
