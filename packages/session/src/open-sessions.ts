import { openSession, type Summarizer, ThroughlineError, type SessionRef } from "@throughline/core";
import {
  assertKnownOptions,
  loadExisting,
  sessionRefText,
  systemClock,
  systemRandom,
} from "@throughline/core/internal";
import type { SessionRow, UserDeletion } from "@throughline/core/internal";
import { createTokenEstimator } from "@throughline/tokens";
import { attachTable, attachTurn, type AttachedTurn, type AttachOptions } from "./attach-turn.ts";
import type { UsageReport } from "@throughline/usage";
import { abandonedTurns, processOwners } from "./process-owners.ts";
import { checkOptions } from "./check-arguments.ts";
import { SessionDirectory } from "./session-directory.ts";
import { openHandle, type OpenParts } from "./open-handle.ts";
import type { SessionHandle } from "./session-handle.ts";
import { targetName, type CompactionTokens, type SessionLog } from "./session-log.ts";
import { createSessionFiles, type SessionFiles } from "./session-files.ts";
import type { SessionsOptions } from "./session-options.ts";
import type {
  DeleteSessionOptions,
  DeleteUserOptions,
  FindSessionOptions,
  ForkSessionOptions,
  OpenSessionOptions,
  RenameSessionOptions,
  SessionList,
  SessionName,
  SessionQuery,
  Sessions,
  SessionsUsageQuery,
  SessionsUser,
} from "./sessions.ts";
import { SharedParts } from "./shared-parts.ts";

function knownTimeZone(timeZone: string | undefined): string {
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone }).resolvedOptions().timeZone;
  } catch {
    const message = `There is no time zone ${JSON.stringify(timeZone)}.`;
    throw new ThroughlineError("INPUT_INVALID", message, { details: { timeZone } });
  }
}

export type CreateHandle<Handle> = (parts: OpenParts, log: SessionLog) => Handle;

/** Holds the open sessions of one program, and gives access to its whole store. */
export class OpenSessions<Handle extends SessionHandle> implements Sessions {
  readonly files: SessionFiles;
  readonly #options: SessionsOptions;
  readonly #createHandle: CreateHandle<Handle>;
  readonly #compactionTokens: CompactionTokens;
  readonly #shared: SharedParts;
  readonly #directory: SessionDirectory;
  readonly #open = new Set<Handle>();
  readonly #closing = new AbortController();
  #isClosed = false;

  /**
   * @param compactionTokens the size, in tokens, at which a compaction is due. Default: never
   * @param titleSummarizer writes titles with `titles: "model"`. Default: none
   */
  constructor(
    options: SessionsOptions,
    createHandle: CreateHandle<Handle>,
    compactionTokens: CompactionTokens = () => null,
    titleSummarizer: Summarizer | null = null,
  ) {
    targetName(options.model.chat.api);
    this.#options = options;
    this.#createHandle = createHandle;
    this.#compactionTokens = compactionTokens;
    this.#shared = new SharedParts({
      clock: options.clock ?? systemClock,
      random: options.random ?? systemRandom,
      estimator: options.estimator ?? createTokenEstimator(),
      owners: options.owners ?? processOwners(),
      timeZone: knownTimeZone(options.timeZone),
      titleSummarizer,
      abandoned: abandonedTurns(options.store),
    });
    const { store, namespace = "", agentId = "main" } = options;
    this.files = createSessionFiles(store, { namespace, agentId }, this.#shared.fileCache);
    const closeHandles = (ref: SessionRef): Promise<void> => this.#closeHandles(ref);
    this.#directory = new SessionDirectory({ options, shared: this.#shared, closeHandles });
  }

  async open(session: SessionName, options: OpenSessionOptions = {}): Promise<Handle> {
    this.#assertOpen();
    checkOptions("sessions.open", options);
    const { ref, label } = await this.#directory.locate("sessions.open", session, options.signal);
    if (ref.archiveId !== undefined)
      throw new ThroughlineError("SESSION_ARCHIVED", "An archived session takes no turns.", { details: { ...ref } });
    const { store } = this.#options;
    if (options.create === false) await loadExisting(store, ref);
    else await openSession(store, ref, { random: this.#shared.random, entry: label === null ? {} : { label } });
    const parts = {
      options: this.#options,
      shared: this.#shared,
      compactionTokens: this.#compactionTokens,
      onClose: () => void this.#open.delete(handle),
    };
    const handle = await openHandle(ref, parts, this.#createHandle, options.signal);
    this.#open.add(handle);
    await handle.readPartialReply();
    // `close` may have run while the session was read. It could not close this handle, so the handle is closed here.
    if (this.#isClosed) await handle.close();
    this.#assertOpen();
    return handle;
  }

  get handles(): readonly Handle[] {
    return [...this.#open];
  }

  async find(session: SessionName, options: FindSessionOptions = {}): Promise<SessionRow | null> {
    this.#assertOpen();
    return this.#directory.find(session, options);
  }

  async attach(session: SessionName, options: AttachOptions = {}): Promise<AttachedTurn | null> {
    this.#assertOpen();
    assertKnownOptions<AttachOptions>("sessions.attach", options, attachTable);
    const { ref } = await this.#directory.locate("sessions.attach", session, options.signal);
    const parts = { options: this.#options, shared: this.#shared, compactionTokens: this.#compactionTokens };
    return attachTurn(ref, parts, [options.signal, this.#closing.signal]);
  }

  async list(query: SessionQuery = {}): Promise<SessionList> {
    this.#assertOpen();
    return this.#directory.list(query);
  }

  async delete(session: SessionName, options: DeleteSessionOptions = {}): Promise<SessionRow | null> {
    this.#assertOpen();
    return this.#directory.delete(session, options);
  }

  async deleteUser(user: SessionsUser, options: DeleteUserOptions = {}): Promise<UserDeletion> {
    this.#assertOpen();
    return this.#directory.deleteUser(user, options);
  }

  async restore(archiveId: string): Promise<SessionRow> {
    this.#assertOpen();
    return this.#directory.restore(archiveId);
  }

  async fork(session: SessionName, options: ForkSessionOptions = {}): Promise<SessionRow> {
    this.#assertOpen();
    return this.#directory.fork(session, options);
  }

  async rename(session: SessionName, options: RenameSessionOptions): Promise<SessionRow> {
    this.#assertOpen();
    return this.#directory.rename(session, options);
  }

  async usage(query: SessionsUsageQuery = {}): Promise<UsageReport> {
    this.#assertOpen();
    return this.#directory.usage(query);
  }

  async #closeHandles(ref: SessionRef): Promise<void> {
    const of = sessionRefText(ref);
    const handles = [...this.#open].filter((handle) => sessionRefText(handle.ref) === of);
    await Promise.all(handles.map((handle) => handle.close()));
  }

  #assertOpen(): void {
    if (this.#isClosed)
      throw new ThroughlineError("SESSION_CLOSED", "These sessions were closed.", { outcome: "not-applied" });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#closing.abort(new ThroughlineError("SESSION_CLOSED", "These sessions were closed."));
    await Promise.all([...this.#open].map((handle) => handle.close()));
    await this.#directory.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
