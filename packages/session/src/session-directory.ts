import {
  endSession,
  parseSessionKey,
  sessionRef,
  type SessionRef,
  type SessionState,
  ThroughlineError,
} from "@throughline/core";
import {
  assertArgument,
  assertMayEnd,
  deleteUser,
  forkToNewSession,
  loadExisting,
  locateSession,
  newSessionRef,
  optionKinds,
  renameSession,
  resolveSession,
  restoreSession,
  type SessionAddress,
  sessionRow,
  type SessionRow,
  type UserDeletion,
} from "@throughline/core/internal";
import type { UsageReport } from "@throughline/usage";
import type { UsageQueue } from "@throughline/usage/internal";
import { checkSessionName, checkOptions, checkUser } from "./check-arguments.ts";
import type { SessionsOptions } from "./session-options.ts";
import type {
  DeleteSessionOptions,
  DeleteUserOptions,
  FindSessionOptions,
  ForkSessionOptions,
  RenameSessionOptions,
  SessionList,
  SessionName,
  SessionQuery,
  SessionsUsageQuery,
  SessionsUser,
} from "./sessions.ts";
import type { SharedParts } from "./shared-parts.ts";
import { plainQueue } from "./turn-queue.ts";
import { TurnWait } from "./turn-wait.ts";

/** Limits the wait for a running turn before a session is deleted or renamed, in milliseconds. */
const defaultWaitMs = 15_000;

interface UserNames {
  readonly namespace: string;
  readonly keyPrefix: string;
}

interface SessionDirectoryOptions {
  readonly options: Pick<SessionsOptions, "store" | "agentId" | "namespace">;
  readonly shared: SharedParts;
  /** Closes the handles of a session that is no longer under its address. */
  readonly closeHandles: (ref: SessionRef) => Promise<void>;
}

/** `label` is the label of the session if it has to be created. */
export interface LocatedSession {
  readonly ref: SessionRef;
  readonly label: string | null;
}

/** Runs the operations on whole sessions of a store. */
export class SessionDirectory {
  readonly #parts: SessionDirectoryOptions;
  #usage: Promise<UsageQueue> | null = null;
  readonly #scope: { readonly namespace: string; readonly agentId: string; readonly isAgentGiven: false };

  constructor(parts: SessionDirectoryOptions) {
    const { namespace = "", agentId = "main" } = parts.options;
    this.#parts = parts;
    this.#scope = { namespace, agentId, isAgentGiven: false };
  }

  /** `open` uses this address, and creates the session when it does not exist. */
  async locate(call: string, address: SessionName, signal?: AbortSignal): Promise<LocatedSession> {
    checkSessionName(call, address);
    if (typeof address !== "string") return { ref: this.#refOf(address), label: null };
    return locateSession(this.#parts.options.store, address, this.#scope, signal === undefined ? {} : { signal });
  }

  async find(address: SessionName, options: FindSessionOptions): Promise<SessionRow | null> {
    checkOptions("sessions.find", options);
    const { ref } = await this.locate("sessions.find", address, options.signal);
    const state = await this.#parts.options.store.load(ref);
    return state === null ? null : sessionRow(state);
  }

  async list(query: SessionQuery): Promise<SessionList> {
    checkOptions("sessions.list", query, "query");
    const { namespace, agentId } = this.#scope;
    const { allAgents = false, ...rest } = query;
    const scope = allAgents ? { namespace } : { namespace, agentId };
    const { sessions, nextCursor } = await this.#parts.options.store.list({ ...rest, ...scope });
    return { sessions: sessions.map(sessionRow), nextCursor };
  }

  async usage(query: SessionsUsageQuery): Promise<UsageReport> {
    checkOptions("sessions.usage", query, "query");
    const { allAgents = false, ...rest } = query;
    const { namespace, agentId } = this.#scope;
    const { options, shared } = this.#parts;
    // The package is loaded on use, because most programs never ask.
    this.#usage ??= import("@throughline/usage/internal").then(({ createUsageQueue }) =>
      createUsageQueue(options.store),
    );
    const scope = allAgents ? { namespace } : { namespace, agentId };
    return (await this.#usage).report({ timeZone: shared.timeZone, ...given(rest), ...scope });
  }

  async close(): Promise<void> {
    await (await this.#usage)?.close();
  }

  async delete(address: SessionName, options: DeleteSessionOptions): Promise<SessionRow | null> {
    checkOptions("sessions.delete", options);
    const { purge = false, waitMs = defaultWaitMs, signal } = options;
    const { ref, sessionId } = await this.#find("sessions.delete", address, signal);
    assertMayEnd(ref);
    const { store } = this.#parts.options;
    const { clock } = this.#parts.shared;
    await this.#whileIdle(ref, { waitMs, signal }, async (timeoutMs) => {
      await endSession(store, ref, { clock, timeoutMs, purge, ...given({ signal }) });
      if (ref.archiveId === undefined) await this.#parts.closeHandles(ref);
    });
    return purge ? null : sessionRow(await loadExisting(store, { ...ref, archiveId: ref.archiveId ?? sessionId }));
  }

  async deleteUser(user: SessionsUser, options: DeleteUserOptions): Promise<UserDeletion> {
    checkUser("sessions.deleteUser", user);
    checkOptions("sessions.deleteUser", options);
    const { dryRun, waitMs: timeoutMs = defaultWaitMs, signal } = options;
    const { keyPrefix = null, namespace = keyPrefix === null ? "" : this.#scope.namespace } =
      user as Partial<UserNames>;
    return deleteUser(
      this.#parts.options.store,
      { namespace, keyPrefix },
      {
        ...given({ dryRun, signal }),
        agentIds: [this.#scope.agentId],
        timeoutMs,
        clock: this.#parts.shared.clock,
        onDeleted: ({ ref }) => (ref.archiveId === undefined ? this.#parts.closeHandles(ref) : undefined),
      },
    );
  }

  async restore(archiveId: string): Promise<SessionRow> {
    assertArgument("sessions.restore", "archiveId", archiveId, optionKinds.filledText);
    const { namespace, agentId } = this.#scope;
    return sessionRow(await restoreSession(this.#parts.options.store, archiveId, { namespace, agentId }));
  }

  async fork(address: SessionName, options: ForkSessionOptions): Promise<SessionRow> {
    checkOptions("sessions.fork", options);
    const { at, key, label, signal } = options;
    const origin = await this.#find("sessions.fork", address, signal);
    const state = await forkToNewSession(this.#parts.options.store, origin, {
      sessionId: this.#parts.shared.random.uuid(),
      ...given({ signal, label }),
      ...(at === undefined ? {} : { at: String(at) }),
      ...(key === undefined ? {} : { target: this.#newRef(key, origin.ref) }),
    });
    return sessionRow(state);
  }

  async rename(address: SessionName, options: RenameSessionOptions): Promise<SessionRow> {
    checkOptions("sessions.rename", options);
    const { key, label, waitMs = defaultWaitMs, signal } = options;
    if (key === undefined && label === undefined) {
      const message = "sessions.rename(): `options` must have a `key`, a `label`, or both.";
      throw new ThroughlineError("INPUT_INVALID", message, {
        outcome: "not-applied",
        details: { argument: "options", expected: "a key, a label, or both", received: "neither" },
      });
    }
    const current = await this.#find("sessions.rename", address, signal);
    const { store } = this.#parts.options;
    const { clock } = this.#parts.shared;
    const change = { clock, ...given({ label, signal }) };
    if (key === undefined) return sessionRow(await renameSession(store, current, change));
    const target = this.#newRef(key, current.ref);
    return this.#whileIdle(current.ref, { waitMs, signal }, async (timeoutMs) => {
      const state = await renameSession(store, current, { ...change, timeoutMs, target });
      await this.#parts.closeHandles(current.ref);
      return sessionRow(state);
    });
  }

  /** Finds an existing session by address, key, label or id. */
  async #find(call: string, address: SessionName, signal?: AbortSignal): Promise<SessionState> {
    checkSessionName(call, address);
    const { store } = this.#parts.options;
    if (typeof address !== "string") return loadExisting(store, this.#refOf(address));
    return resolveSession(store, address, this.#scope, { isExact: true, ...given({ signal }) });
  }

  /** The new session belongs to the same agent as the given one. */
  #newRef(text: string, { namespace, agentId }: SessionRef): SessionRef {
    return newSessionRef(text, { namespace, agentId, isAgentGiven: true });
  }

  #refOf({ key, agentId, namespace, archiveId }: SessionAddress): SessionRef {
    const named = parseSessionKey(key).agentId;
    return sessionRef({
      key,
      namespace: namespace ?? this.#scope.namespace,
      agentId: agentId ?? named ?? this.#scope.agentId,
      ...given({ archiveId }),
    });
  }

  /**
   * Runs work while no turn of this process runs in the session. The work itself must wait for turns of other
   * processes.
   */
  async #whileIdle<Result>(
    ref: SessionRef,
    { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal | undefined },
    work: (leftMs: number) => Promise<Result>,
  ): Promise<Result> {
    const { clock, owners, random } = this.#parts.shared;
    const sinceMs = clock.nowMs();
    const wait = new TurnWait({ clock, owners, signals: [signal], waitMs });
    const place = await wait.enter(this.#parts.shared.queueOf(ref), {
      holder: { turnId: random.uuid(), sinceMs },
      drafts: null,
      settings: plainQueue,
      arrivedAtMs: sinceMs,
    });
    try {
      return await work(Math.max(0, waitMs - (clock.nowMs() - sinceMs)));
    } finally {
      if (place.kind === "own") place.leave();
    }
  }
}

/** An option that is undefined must have no field, because the option types forbid undefined. */
function given<Fields extends object>(fields: Fields): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as ReturnType<
    typeof given<Fields>
  >;
}
