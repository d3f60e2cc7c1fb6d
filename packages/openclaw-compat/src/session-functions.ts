import { homedir } from "node:os";
import {
  resolveDefaultStorePath,
  resolveSessionsDir,
  resolveTranscriptPath,
} from "@throughline/openclaw-format/internal";
import { resolveStorePath as resolveConfiguredPath } from "@throughline/openclaw-format";
import type { SendAction } from "@throughline/policy";
import type { OpenclawSessions } from "./openclaw-sessions.ts";
import { resolvePolicy, type SendPolicyParams } from "./resolve-policy.ts";
import { clearCaches, defaultStateDir, inStateDir, stateDirOf } from "./state-directory.ts";

/** OpenClaw's session functions by their names, over the JSONL store of the state directory that a path lies in. */

export const loadSessionStore: OpenclawSessions["loadSessionStore"] = (storePath, options) =>
  inDirectoryOf(storePath, (sessions) => sessions.loadSessionStore(storePath, options));

export const saveSessionStore: OpenclawSessions["saveSessionStore"] = (storePath, store) =>
  inDirectoryOf(storePath, (sessions) => sessions.saveSessionStore(storePath, store));

export const updateSessionStore: OpenclawSessions["updateSessionStore"] = (storePath, mutator, options) =>
  inDirectoryOf(storePath, (sessions) => sessions.updateSessionStore(storePath, mutator, options));

export const withSessionStoreLock: OpenclawSessions["withSessionStoreLock"] = (storePath, action, options) =>
  inDirectoryOf(storePath, (sessions) => sessions.withSessionStoreLock(storePath, action, options));

export const updateSessionStoreEntry: OpenclawSessions["updateSessionStoreEntry"] = (params) =>
  inDirectoryOf(params.storePath, (sessions) => sessions.updateSessionStoreEntry(params));

export const recordSessionMetaFromInbound: OpenclawSessions["recordSessionMetaFromInbound"] = (params) =>
  inDirectoryOf(params.storePath, (sessions) => sessions.recordSessionMetaFromInbound(params));

export const updateLastRoute: OpenclawSessions["updateLastRoute"] = (params) =>
  inDirectoryOf(params.storePath, (sessions) => sessions.updateLastRoute(params));

/** In the default state directory. */
export const appendAssistantMessageToSessionTranscript: OpenclawSessions["appendAssistantMessageToSessionTranscript"] =
  (params) => inStateDir(defaultStateDir(), (sessions) => sessions.appendAssistantMessageToSessionTranscript(params));

export function resolveSessionTranscriptPath(sessionId: string, agentId?: string, topicId?: string | number): string {
  return resolveTranscriptPath({ ...inDefault(agentId), sessionId, ...(topicId === undefined ? {} : { topicId }) });
}

export function resolveDefaultSessionStorePath(agentId?: string): string {
  return resolveDefaultStorePath(inDefault(agentId));
}

export function resolveSessionTranscriptsDirForAgent(agentId?: string): string {
  return resolveSessionsDir(inDefault(agentId));
}

export function resolveStorePath(store?: string, options: { readonly agentId?: string } = {}): string {
  return resolveConfiguredPath(store, { ...inDefault(options.agentId), homeDir: homedir() });
}

/** @throws {ThroughlineError} CONFIG_INVALID for a policy that cannot be understood */
export function resolveSendPolicy(params: SendPolicyParams): SendAction {
  return resolvePolicy(params);
}

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
