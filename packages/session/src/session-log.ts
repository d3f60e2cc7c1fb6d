import { loadExisting } from "@throughline/core/internal";
import { type SessionState, type StoredRecord, ThroughlineError } from "@throughline/core";
import { createHistory, type History } from "@throughline/history";
import { type ProviderMapping, providerMappings, type TargetName } from "@throughline/history/internal";
import type { ContextLimit, WindowCut } from "@throughline/history/internal";
import { gaugeOf, type ContextEstimate, type Gauge } from "@throughline/tokens";
import { type FileCache, FileContents } from "./file-contents.ts";
import type { SessionModel } from "./session-options.ts";
import { isCycleStart } from "./window-facts.ts";
import { WindowLog, type WindowLogOptions } from "./window-log.ts";

export interface LogTarget {
  readonly api: string;
  readonly provider: string;
  readonly modelId: string;
}

export interface SessionLogOptions extends WindowLogOptions {
  readonly target: LogTarget;
  /**
   * Returns the size at which a compaction is due for a window, in tokens; null when no compaction is due at any size.
   */
  readonly compactionTokens: CompactionTokens;
  /** Keeps the files that sessions of this process sent last. */
  readonly fileCache: FileCache;
}

export type CompactionTokens = (windowTokens: number | null) => number | null;

/** Holds a session's window, and the messages that it renders for one model. */
export class SessionLog extends WindowLog {
  #history: History;
  #target: LogTarget;
  readonly #compactionTokens: CompactionTokens;
  readonly #files: FileContents;
  #cut: WindowCut | null = null;
  /** Is true when the head may have left the branch of the cut. */
  #isCutUnsure = false;

  private constructor(options: SessionLogOptions, state: SessionState) {
    super(options, state);
    this.#compactionTokens = options.compactionTokens;
    this.#target = options.target;
    this.#files = new FileContents({ files: options.store.files, scope: options.ref, cache: options.fileCache });
    this.#history = this.#newHistory();
  }

  #newHistory(): History {
    return createHistory(targetName(this.#target.api), { target: this.#target, files: (id) => this.#files.get(id) });
  }

  /** Reads the window. @throws {ThroughlineError} SESSION_NOT_FOUND */
  static async load(options: SessionLogOptions, signal?: AbortSignal): Promise<SessionLog> {
    const log = new SessionLog(options, await loadExisting(options.store, options.ref));
    await log.readFirst(signal);
    return log;
  }

  protected override begin(): void {
    this.#cut = null;
    this.cutForWindow = undefined;
    this.#history = this.#newHistory();
  }

  /** The bytes of a file are read once, before its record is rendered: a rendering does not wait. */
  protected override beforeTake(records: readonly StoredRecord[], isWhole: boolean): Promise<void> | null {
    return this.#files.load(records, { isWhole, rules: () => mappingFor(this.#target.api).rules });
  }

  protected override take(stored: StoredRecord): void {
    // A summary replaces everything before it, so the cut is obsolete.
    if (this.#cut !== null && isCycleStart(stored)) this.unlimit();
    this.#history.append([stored]);
  }

  protected override moveHead(headId: string | null): void {
    this.#history.moveHead(headId);
    this.#isCutUnsure = this.#cut !== null;
  }

  /** Holds the window for which a cut was decided; undefined before the first decision. */
  cutForWindow: number | null | undefined = undefined;

  /** States where the history is cut; null when it is whole. */
  get cut(): WindowCut | null {
    if (this.#isCutUnsure) this.#cut = this.#history.context().cut;
    this.#isCutUnsure = false;
    return this.#cut;
  }

  /** Leaves out the oldest messages in later renderings. Returns the position of the cut. */
  async limit(limit: ContextLimit): Promise<WindowCut | null> {
    this.#history.setWindow({ limit });
    await this.#history.prepare();
    this.#isCutUnsure = false;
    this.#cut = this.#history.context().cut;
    return this.#cut;
  }

  unlimit(): void {
    this.#history.setWindow({ limit: {} });
    this.#isCutUnsure = false;
    this.#cut = null;
  }

  get history(): History {
    return this.#history;
  }

  /**
   * Returns the newest `thinking_level_change` on the branch of the head, with the model at that time. Null without
   * any.
   */
  get recordedThinking(): { readonly level: string; readonly modelId: string | null } | null {
    if (!this.facts.hasThinkingLevel) return null;
    const { thinkingLevel, model } = this.#history.context();
    return { level: thinkingLevel, modelId: model?.modelId ?? null };
  }

  gauge(estimate: ContextEstimate, windowTokens: number | null): Gauge {
    return gaugeOf(estimate, { windowTokens, compactionTokens: this.#compactionTokens(windowTokens) });
  }

  get target(): LogTarget {
    return this.#target;
  }

  /**
   * Renders the messages for another model. The window is read again, because rendered messages have the shapes of the
   * previous model.
   */
  async retarget(target: LogTarget): Promise<void> {
    const { api, provider, modelId } = this.#target;
    if (target.api === api && target.provider === provider && target.modelId === modelId) return;
    targetName(target.api);
    this.#target = target;
    await this.reload();
  }
}

export function targetOf({ chat, modelId }: SessionModel): LogTarget {
  return { api: chat.api, provider: chat.provider, modelId };
}

/** Returns the functions that render messages for an API. @throws {ThroughlineError} CAPABILITY_UNSUPPORTED */
export function mappingFor(api: string): ProviderMapping<unknown> {
  return providerMappings[targetName(api)]({});
}

/** @throws {ThroughlineError} CAPABILITY_UNSUPPORTED */
export function targetName(api: string): TargetName {
  if (Object.hasOwn(providerMappings, api)) return api as TargetName;
  const known = Object.keys(providerMappings).join(", ");
  throw new ThroughlineError(
    "CAPABILITY_UNSUPPORTED",
    `No messages can be made for the API ${api}, only for ${known}.`,
    {
      details: { api },
    },
  );
}
