import type {
  SessionKey,
  SessionStore as ClaudeStore,
  SessionStoreEntry,
  SessionSummaryEntry,
} from "@anthropic-ai/claude-agent-sdk";
import type { SessionRef, SessionState } from "@throughline/core";
import {
  assertArgument,
  assertKnownOptions,
  isFields,
  optionKinds,
  type OptionTable,
} from "@throughline/core/internal";
import type { LiveItemsOptions } from "@throughline/foreign-formats/internal";
import {
  adapterOptions,
  type AdapterOptions,
  adapterOptionTable,
  assertMaySend,
  frameworkSessionKey,
  type RunPolicyOptions,
  runPolicyTable,
} from "@throughline/foreign-formats/internal";
import { loadClaudeSdk } from "./claude-sdk.ts";
import { MirroredSession, type MirrorContext } from "./mirrored-session.ts";

/**
 * Configures `createClaudeSessionStore`. The SDK itself asks the model, so a denied run cannot be stopped here. A
 * session that `sendPolicy` or its entry denies is not recorded.
 */
export interface ClaudeSessionStoreOptions extends AdapterOptions, Pick<RunPolicyOptions, "sendPolicy"> {
  /**
   * Returns the session behind a key, for sessions that other programs created; null for the usual session.
   * @default the usual session
   */
  readonly refOf?: ((key: SessionKey) => SessionRef | null) | undefined;
  /** Is called for content of another program that has no line in a transcript. @default none */
  readonly onLoss?: LiveItemsOptions["onLoss"] | undefined;
  /** Erases the session permanently on `delete`. @default false: the session is archived */
  readonly purge?: boolean | undefined;
}

/** Implements the `sessionStore` of the Claude Agent SDK over a store. */
export interface ClaudeSessionStore extends Required<ClaudeStore> {
  /**
   * Appends lines that a dropped batch lost, from the SDK's own file of the session. Stored lines stay unchanged.
   * @param options `dir`: the folder of the project. @default every project is searched
   * @throws {ThroughlineError} INPUT_INVALID, MODEL_SDK_MISSING, and what the SDK says of the file
   */
  repairMirror(sessionId: string, options?: { readonly dir?: string | undefined }): Promise<void>;
  /** Returns the session behind a key. @throws {ThroughlineError} INPUT_INVALID for a key that lacks a field */
  sessionOf(key: SessionKey): SessionRef;
}

const { callback, filledText, flag, required, text } = optionKinds;
const table: OptionTable<ClaudeSessionStoreOptions> = {
  ...adapterOptionTable,
  sendPolicy: runPolicyTable.sendPolicy,
  refOf: callback,
  onLoss: callback,
  purge: flag,
};
const keyTable: OptionTable<SessionKey> = {
  projectKey: required(text),
  sessionId: required(text),
  // White space alone is a valid subpath, so only an empty text is refused.
  subpath: { expected: "a text that is not empty", accepts: (value) => typeof value === "string" && value !== "" },
};

const framework = "claude-code";
/** Limits the sessions in memory; a dropped session is read again on use. */
const mostReady = 500;

/**
 * Creates a store for `query({ options: { sessionStore } })`. Each transcript, also of a sub-agent, is stored in its
 * own session.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function createClaudeSessionStore(options: ClaudeSessionStoreOptions): ClaudeSessionStore {
  assertKnownOptions<ClaudeSessionStoreOptions>("createClaudeSessionStore", options, table);
  return new Mirrors(options);
}

class Mirrors implements ClaudeSessionStore {
  readonly #options: ClaudeSessionStoreOptions;
  readonly #context: MirrorContext;
  /** Orders the sessions by last use, oldest first, so that the oldest can be dropped. */
  readonly #ready = new Map<string, MirroredSession>();

  constructor(options: ClaudeSessionStoreOptions) {
    this.#options = options;
    let fold: ReturnType<MirrorContext["fold"]> | null = null;
    this.#context = {
      ...adapterOptions(options),
      onLoss: options.onLoss,
      fold: () => (fold ??= foldOfSdk()),
    };
  }

  sessionOf(key: SessionKey): SessionRef {
    assertKnownOptions<SessionKey>("sessionOf", key, keyTable, "key");
    const { agentId, namespace } = adapterOptions(this.#options);
    const { projectKey, sessionId, subpath } = key;
    const id = [projectKey, sessionId, ...(subpath === undefined ? [] : [subpath])];
    return this.#options.refOf?.(key) ?? frameworkSessionKey({ agentId, namespace, framework, id });
  }

  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    assertArgument("append", "entries", entries, optionKinds.listOf(optionKinds.object));
    await this.#session(key).append(entries, async () => {
      if (entries.some(isSpoken)) await this.#assertMaySend(key);
    });
  }

  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    return await this.#session(key).load();
  }

  async listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    const states = await this.#listed([projectKey]);
    return states.flatMap((state) => {
      const { sessionId, subpath } = claudeKeyOf(state);
      return subpath === undefined ? [{ sessionId, mtime: mtimeOf(state) }] : [];
    });
  }

  /** Returns the summaries that are as new as their sessions. The SDK loads every other session itself. */
  async listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]> {
    const states = await this.#listed([projectKey]);
    return states.flatMap((state) => {
      const { sessionId, subpath } = claudeKeyOf(state);
      const summary = state.entry["claudeSummary"];
      if (subpath !== undefined || !isFields(summary) || !isFields(summary["data"])) return [];
      if (summary["seq"] !== state.head.lastSeq) return [];
      return [{ sessionId, mtime: mtimeOf(state), data: summary["data"] }];
    });
  }

  async delete(key: SessionKey): Promise<void> {
    const { purge = false } = this.#options;
    const { projectKey, sessionId, subpath } = key;
    // The main transcript goes last, so that an interrupted delete leaves no sub-agents without it.
    const subpaths = subpath === undefined ? await this.listSubkeys(key) : [];
    for (const path of subpaths) await this.#session({ projectKey, sessionId, subpath: path }).remove(purge);
    await this.#session(key).remove(purge);
  }

  async listSubkeys({ projectKey, sessionId }: Pick<SessionKey, "projectKey" | "sessionId">): Promise<string[]> {
    const states = await this.#listed([projectKey, sessionId]);
    return states.flatMap((state) => {
      const key = claudeKeyOf(state);
      return key.sessionId === sessionId && key.subpath !== undefined ? [key.subpath] : [];
    });
  }

  async repairMirror(sessionId: string, given: { readonly dir?: string } = {}): Promise<void> {
    assertArgument("repairMirror", "sessionId", sessionId, filledText);
    assertKnownOptions<typeof given>("repairMirror", given, { dir: filledText });
    const { dir } = given;
    const { importSessionToStore } = await loadClaudeSdk("importSessionToStore");
    const kept = new Map<string, Map<string, number>>();
    const repaired: ClaudeStore = {
      load: (key) => this.load(key),
      append: async (key, entries) => {
        const name = this.sessionOf(key).key;
        const counts = kept.get(name) ?? countsOf((await this.load(key)) ?? []);
        kept.set(name, counts);
        await this.append(
          key,
          entries.filter((entry) => !isCounted(entry, counts)),
        );
      },
    };
    await importSessionToStore(sessionId, repaired, dir === undefined ? {} : { dir });
  }

  /** Checks the policy of the main session, because sub-agents work for it. @throws {ThroughlineError} SEND_DENIED */
  async #assertMaySend({ projectKey, sessionId }: SessionKey): Promise<void> {
    const { store } = adapterOptions(this.#options);
    const ref = this.sessionOf({ projectKey, sessionId });
    assertMaySend(ref, (await store.load(ref))?.entry ?? null, this.#options.sendPolicy ?? null);
  }

  #session(key: SessionKey): MirroredSession {
    const ref = this.sessionOf(key);
    const name = JSON.stringify([ref, key.sessionId]);
    const { subpath, ...main } = key;
    const parent = subpath === undefined ? null : this.sessionOf(main);
    const session = this.#ready.get(name) ?? new MirroredSession(ref, { ...key }, parent, this.#context);
    this.#ready.delete(name);
    this.#ready.set(name, session);
    for (const [oldest, { isIdle }] of this.#ready) {
      if (this.#ready.size <= mostReady) break;
      if (isIdle) this.#ready.delete(oldest);
    }
    return session;
  }

  async #listed(id: readonly string[]): Promise<readonly SessionState[]> {
    const { store, agentId, namespace } = adapterOptions(this.#options);
    const own = frameworkSessionKey({ agentId, namespace, framework, id }).key;
    // With `refOf`, the keys of the sessions can have any form, so no prefix narrows the list.
    const keys = this.#options.refOf === undefined ? { keyPrefix: `${own}:` } : {};
    const states: SessionState[] = [];
    let cursor: string | null = null;
    do {
      const page = cursor === null ? {} : { cursor };
      const { sessions, nextCursor } = await store.list({
        agentId,
        namespace,
        sort: "key",
        limit: 1000,
        ...keys,
        ...page,
      });
      states.push(...sessions.filter((state) => claudeKeyOf(state).projectKey === id[0]));
      cursor = nextCursor;
    } while (cursor !== null);
    return states;
  }
}

/** Reads the SDK's key of a session from its entry; the first append of lines stores it there. */
function claudeKeyOf({ entry }: SessionState): SessionKey | { projectKey: null; sessionId: string; subpath?: string } {
  const key = entry["claudeSession"];
  const isKey = isFields(key) && typeof key["projectKey"] === "string" && typeof key["sessionId"] === "string";
  return isKey ? (key as SessionKey) : { projectKey: null, sessionId: "" };
}

function mtimeOf({ updatedAtMs }: SessionState): number {
  return Math.floor(updatedAtMs);
}

async function foldOfSdk(): ReturnType<MirrorContext["fold"]> {
  try {
    return (await loadClaudeSdk("foldSessionSummary")).foldSessionSummary;
  } catch {
    // A program may write lines without the SDK. Its sessions are then listed without summaries.
    return null;
  }
}

/** Recognizes messages. Other lines, such as titles and summaries, need no permission to send. */
function isSpoken({ type }: SessionStoreEntry): boolean {
  return type === "user" || type === "assistant";
}

/** Counts equal lines without a `uuid`, because a repair can compare these only by content. */
function countsOf(entries: readonly SessionStoreEntry[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const entry of entries) {
    if (typeof entry.uuid === "string") continue;
    const text = JSON.stringify(entry);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return counts;
}

function isCounted(entry: SessionStoreEntry, counts: Map<string, number>): boolean {
  const text = JSON.stringify(entry);
  const left = counts.get(text) ?? 0;
  if (typeof entry.uuid === "string" || left === 0) return false;
  counts.set(text, left - 1);
  return true;
}
