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
 * Options of `createClaudeSessionStore`. The SDK asks the model itself: a session that `sendPolicy` or its entry denies is not
 * recorded.
 */
export interface ClaudeSessionStoreOptions extends AdapterOptions, Pick<RunPolicyOptions, "sendPolicy"> {
  /** The session behind a key, for sessions that other programs began; null for the usual one. @default the usual one */
  readonly refOf?: (key: SessionKey) => SessionRef | null;
  /** Called for what another program wrote and has no place among lines. @default none */
  readonly onLoss?: LiveItemsOptions["onLoss"];
  /** Whether `delete` erases for good. @default false: sessions are archived */
  readonly purge?: boolean;
}

/** The `sessionStore` of the Claude Agent SDK over a store of ours. */
export interface ClaudeSessionStore extends Required<ClaudeStore> {
  /**
   * Appends what a dropped batch has lost, from the SDK's own file of the session. What is there stays as it is.
   * @param options `dir`: the folder of the project. @default every project is searched
   * @throws {ThroughlineError} INPUT_INVALID, MODEL_SDK_MISSING, and what the SDK says of the file
   */
  repairMirror(sessionId: string, options?: { readonly dir?: string }): Promise<void>;
  /** The session behind a key. @throws {ThroughlineError} INPUT_INVALID for a key that lacks a field */
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
  // White space alone is a subpath as any other.
  subpath: { expected: "a text that is not empty", accepts: (value) => typeof value === "string" && value !== "" },
};

const framework = "claude-code";
/** Sessions that are kept ready; another one is read again when it is needed. */
const mostReady = 500;

/**
 * A store for `query({ options: { sessionStore } })`: transcripts and those of their sub-agents, each in a session of its own.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function createClaudeSessionStore(options: ClaudeSessionStoreOptions): ClaudeSessionStore {
  assertKnownOptions<ClaudeSessionStoreOptions>("createClaudeSessionStore", options, table);
  return new Mirrors(options);
}

class Mirrors implements ClaudeSessionStore {
  readonly #options: ClaudeSessionStoreOptions;
  readonly #context: MirrorContext;
  /** The one used longest ago first. */
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

  /** Those that are as new as their sessions; the SDK loads the others. */
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
    // The main transcript last: what names the others is there until they are gone.
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

  /** Sub-agents speak for the session that asked them. @throws {ThroughlineError} SEND_DENIED */
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

  /** The sessions of a key's first parts. */
  async #listed(id: readonly string[]): Promise<readonly SessionState[]> {
    const { store, agentId, namespace } = adapterOptions(this.#options);
    const own = frameworkSessionKey({ agentId, namespace, framework, id }).key;
    // Where the caller says which session it is, its key may be any.
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

/** What the entry of a session says of its key; it is written with the first lines. */
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
    // Whoever writes lines without the SDK lists sessions without summaries.
    return null;
  }
}

/** Whether a line is a message; others are titles, summaries and the like. */
function isSpoken({ type }: SessionStoreEntry): boolean {
  return type === "user" || type === "assistant";
}

/** How often each line without a `uuid` is there. */
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
