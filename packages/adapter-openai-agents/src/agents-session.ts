import type {
  AgentInputItem,
  OpenAIResponsesCompactionArgs,
  OpenAIResponsesCompactionResult,
  RunContext,
  SessionHistoryRewriteArgs,
  SessionHistoryTransactionArgs,
} from "@openai/agents-core";
import { hasErrorCode, type SessionRef } from "@throughline/core";
import { assertKnownOptions, isFields, optionKinds, type OptionTable } from "@throughline/core/internal";
import {
  adapterOptions,
  type AdapterOptions,
  adapterOptionTable,
  beforeNextCall,
  beforeRun,
  compactAgentItems,
  createFrameworkLog,
  cutAgentItems,
  type FrameworkLog,
  frameworkSessionKey,
  isAgentCall,
  isAgentResult,
  type LiveItem,
  type LiveItemsOptions,
  liveNote,
  type LogChange,
  type LogView,
  movesHead,
  openAiAgentsItems,
  plainJson,
  readAgentItems,
  replaceAgentCall,
  type RunPlace,
  type RunPolicyOptions,
  runPolicyTable,
  withBytes,
} from "@throughline/foreign-formats/internal";
import type { RunRecorder } from "./run-recorder.ts";
import { userError, withSdkErrors } from "./sdk-errors.ts";
import { asItem, checkTransaction, endsWith, operationRecordId, transactionTexts } from "./transactions.ts";

/** Names the agent and namespace whose session a run uses. */
interface SessionScope {
  /** Names the agent of the session. @default the option `agentId` */
  readonly agentId?: string;
  /** Names the namespace of the session. @default the option `namespace` */
  readonly namespace?: string;
}

/**
 * Configures `createAgentsSession`. `sendPolicy` and `reset` are checked when a run reads the history, before it asks a
 * model. `recordRun` checks them as well; its own options have priority.
 */
export interface AgentsSessionOptions extends AdapterOptions, RunPolicyOptions {
  /** Sets the SDK's id of the session, any text. @default a random UUID */
  readonly sessionId?: string | undefined;
  /** Sets the session of the store; another program may have created it. @default the one that `sessionId` names */
  readonly ref?: SessionRef | undefined;
  /** Returns the agent and namespace for the context of a run. @default the same for every run */
  readonly scopeOf?: ((runContext: RunContext<unknown> | undefined) => SessionScope) | undefined;
  /** Compacts the session; the runner calls it after a turn. @default the session is not compacted */
  readonly compact?:
    | ((ref: SessionRef, args: OpenAIResponsesCompactionArgs) => Promise<OpenAIResponsesCompactionResult | null>)
    | undefined;
  /** Is called for content of another program that items cannot hold. @default none */
  readonly onLoss?: LiveItemsOptions["onLoss"] | undefined;
  /** Erases the session permanently on `clearSession`. @default false: it is reset, and the log keeps the records */
  readonly purge?: boolean | undefined;
}

const { callback, flag, object, text } = optionKinds;
const table: OptionTable<AgentsSessionOptions> = {
  ...adapterOptionTable,
  ...runPolicyTable,
  sessionId: text,
  ref: object,
  scopeOf: callback,
  compact: callback,
  onLoss: callback,
  purge: flag,
};

/** Holds the context that the runner passes in a run; undefined outside of a run. */
type Context = RunContext<unknown> | undefined;

/**
 * Implements a session of the OpenAI Agents SDK over a log, for `run(agent, input, { session })`. `createAgentsSession`
 * creates it. Every method reports an error of the store as the cause of the SDK's `UserError`, whose message ends with
 * the code.
 */
export class AgentsSession {
  readonly acceptsRunContext = true as const;
  /** Holds the recorder of the current run; null when no recorded run is active. */
  recorder: RunRecorder | null = null;
  /** Compacts the session. It is absent without the option `compact`, because the runner checks for the method. */
  readonly runCompaction?: (
    args?: OpenAIResponsesCompactionArgs,
    runContext?: Context,
  ) => Promise<OpenAIResponsesCompactionResult | null>;
  readonly #options: AgentsSessionOptions;
  readonly #sessionId: string;
  readonly #logs = new Map<string, FrameworkLog>();
  /** Holds contexts of runs that passed the policy, so that each run is checked once. */
  readonly #begun = new WeakSet<NonNullable<Context>>();
  /** Caches the items of a view, because converting a long log is expensive. */
  readonly #items = new WeakMap<LogView["records"], readonly LiveItem[]>();

  constructor(options: AgentsSessionOptions) {
    this.#options = options;
    this.#sessionId = options.sessionId ?? options.ref?.key ?? adapterOptions(options).random.uuid();
    const { compact } = options;
    if (compact !== undefined)
      this.runCompaction = (args = {}, context = undefined) => compact(this.log(context).ref, args);
  }

  /** Returns the log of the session, for the context of a run. */
  log(context: Context = undefined): FrameworkLog {
    const { store, agentId, namespace, clock, random } = adapterOptions(this.#options);
    const { ref: given, scopeOf } = this.#options;
    const scope = { agentId, namespace, ...scopeOf?.(context) };
    const ref = given ?? frameworkSessionKey({ ...scope, framework: "openai-agents", id: this.#sessionId });
    const name = JSON.stringify(ref);
    const log = this.#logs.get(name) ?? createFrameworkLog({ store, ref, clock, random });
    this.#logs.set(name, log);
    return log;
  }

  /**
   * Checks the policies that a run of this session must follow. `recordRun` calls it.
   * @throws {ThroughlineError} SEND_DENIED
   */
  async beforeRun(policy: RunPolicyOptions, isNew: boolean): Promise<void> {
    await beforeRun({ ...this.#place(undefined), isNew }, { ...this.#options, ...policy });
  }

  /** Checks whether a run may ask a model again. `recordRun` calls it. @throws the SDK's UserError with SEND_DENIED */
  async beforeNextCall(policy: RunPolicyOptions): Promise<void> {
    await withSdkErrors(() => beforeNextCall(this.#place(undefined), { ...this.#options, ...policy }));
  }

  /** Returns the SDK's id of the session: `sessionId`, else the key of `ref`, else a random UUID. */
  getSessionId(): Promise<string> {
    return Promise.resolve(this.#sessionId);
  }

  /**
   * Returns the items of the history, oldest first, as copies.
   * @param limit how many of the newest items; none for 0 or less, all unless given
   * @param context of a run: the first call with it begins the run
   * @throws the SDK's UserError, with the ThroughlineError as its cause; SEND_DENIED for a run alone
   */
  getItems(limit?: number, context?: Context): Promise<AgentInputItem[]> {
    return withSdkErrors(async () => {
      await this.#beginRun(context);
      if (limit !== undefined && limit <= 0) return [];
      const items = this.#itemsOf(await this.log(context).view());
      const wanted = limit === undefined ? items : items.slice(-limit);
      // Each call returns new objects, because the runner compares items by identity.
      return wanted.map(({ value }) => asItem(withBytes(value) as LiveItem["value"]));
    });
  }

  /**
   * Appends items, except items that `recordRun` has already stored.
   * @throws the SDK's UserError for an item that is not a JSON object, and with the ThroughlineError of a failed append
   */
  async addItems(items: AgentInputItem[], context?: Context): Promise<void> {
    this.#endRun(context);
    const added = await this.#storable(items);
    // An item that the recorder is storing right now would otherwise be stored twice.
    await this.recorder?.settled();
    const missing = this.recorder === null ? added : this.recorder.unrecorded(added);
    if (missing.length > 0) await this.recordItems(missing, context);
  }

  /**
   * Appends items without a check for repetitions. `recordRun` calls it; the runner passes the same items to `addItems`
   * later.
   * @throws as `addItems`
   */
  async recordItems(items: readonly LiveItem["value"][], context?: Context): Promise<void> {
    await this.#append(context, (view, log) => additions(view, log, items));
  }

  /** Returns the ids of the calls that have no result. `recordRun` calls it. @throws as `getItems` */
  async openCalls(): Promise<readonly unknown[]> {
    return await withSdkErrors(async () => openCallsIn(this.#itemsOf(await this.log().view())));
  }

  /** Takes back the newest item and returns it; undefined for an empty history. The log keeps the record. */
  async popItem(context?: Context): Promise<AgentInputItem | undefined> {
    let popped: AgentInputItem | undefined;
    await this.#append(context, (view, log) => {
      const items = this.#itemsOf(view);
      const last = items.at(-1);
      popped = last === undefined ? undefined : asItem(withBytes(last.value) as LiveItem["value"]);
      return last === undefined ? null : cutAgentItems(view, items, items.length - 1, log.place(view));
    });
    return popped;
  }

  /** Empties the history. The log keeps the records, unless the option `purge` erases the session. */
  clearSession(context?: Context): Promise<void> {
    if (this.#options.purge !== true)
      return this.#append(context, ({ state, lastSeq }, log) =>
        state === null || lastSeq === 0
          ? null
          : { drafts: [{ type: "reset", id: log.nextId(), reason: "clearSession" }] },
      );
    return withSdkErrors(async () => {
      const log = this.log(context);
      if ((await log.view()).state !== null) await this.#options.store.remove(log.ref, { purge: true });
    });
  }

  /** Replaces function calls by their `callId`, with one append per call. An unknown `callId` changes nothing. */
  async applyHistoryMutations({ mutations }: SessionHistoryRewriteArgs): Promise<void> {
    for (const { callId, replacement } of mutations) {
      const [item = {}] = await this.#storable([replacement]);
      await this.#append(undefined, (view, log) => {
        const change = replaceAgentCall(view, { callId, replacement: item }, log.place(view));
        return change.drafts.length === 0 ? null : change;
      });
    }
  }

  /**
   * Appends items, or replaces the end of the history, in one append. Repeating it with the same `operationId` changes
   * nothing.
   * @throws the SDK's UserError for an invalid transaction, another one under that id, and an end that differs from
   *   `expectedSuffix`
   */
  async applyHistoryTransaction(args: SessionHistoryTransactionArgs, context?: Context): Promise<void> {
    this.#endRun(context);
    const { operationId, hash, expectedSuffix, items } = await checkTransaction(args);
    await this.recorder?.settled();
    // The recorder matches each item once, so a repeated append must reuse the first result.
    let missing: readonly LiveItem["value"][] | null = null;
    let refusal: string | null = null;
    const attempt = (): Promise<void> =>
      this.#append(context, (view, log) => {
        refusal = null;
        const id = operationRecordId(view, operationId);
        const known = view.records.find((stored) => stored.id === id)?.record["data"];
        if (known !== undefined) refusal = isFields(known) && known["hash"] === hash ? "" : transactionTexts.other;
        const current = expectedSuffix === null ? [] : this.#itemsOf(view);
        const isOther =
          expectedSuffix !== null &&
          !endsWith(
            current.map(({ value }) => value),
            expectedSuffix,
          );
        if (refusal === null && isOther) refusal = transactionTexts.suffix;
        if (refusal !== null) return null;
        const cut = cutAgentItems(view, current, current.length - (expectedSuffix?.length ?? 0), log.place(view));
        missing ??= expectedSuffix === null ? (this.recorder?.unrecorded(items) ?? items) : items;
        const { drafts } = additions({ ...view, headId: cut.headId }, log, missing);
        const note = liveNote(
          "openai-agents.operation",
          { operationId, hash },
          { ...log.place(view), nextId: () => id },
        );
        const moved = drafts.some(movesHead) || cut.rewindTo === undefined ? {} : { rewindTo: cut.rewindTo };
        return { drafts: [...cut.drafts, ...drafts, note], ...moved };
      });
    try {
      await attempt();
    } catch (error) {
      // The operation lies before the part of the log that was read. Its record exists, so it was applied.
      if (!hasErrorCode((error as { cause?: unknown }).cause, "RECORD_ID_TAKEN")) throw error;
      refusal = (await this.#hashBefore(context, operationId)) === hash ? "" : transactionTexts.other;
    }
    if (refusal !== null && refusal !== "") throw await userError(refusal);
  }

  /** Replaces the whole history with these items. The log keeps the earlier records. */
  replaceHistoryWithCompaction(items: AgentInputItem[], context?: Context): Promise<void> {
    return this.#append(context, (view, log) =>
      compactAgentItems(
        items.map((item) => plainJson(item) ?? {}),
        this.#itemsOf(view),
        log.place(view),
      ),
    );
  }

  /** Returns the state of the run that stopped for an approval, for `RunState.fromString`; null when no run waits. */
  async pendingRunState(context?: Context): Promise<string | null> {
    const { records } = await withSdkErrors(() => this.log(context).view());
    const last = records.findLast(({ record }) => record["customType"] === "openai-agents.run-state")?.record["data"];
    const state = isFields(last) ? last["state"] : null;
    return typeof state === "string" ? state : null;
  }

  /** Stores data beside the conversation. */
  async note(name: string, data: Readonly<Record<string, unknown>>, context?: Context): Promise<void> {
    await this.#append(context, (view, log) => ({
      drafts: [liveNote(`openai-agents.${name}`, data, log.place(view))],
    }));
  }

  #place(context: Context): Omit<RunPlace, "isNew"> {
    const { store, clock, random } = adapterOptions(this.#options);
    return { store, ref: this.log(context).ref, clock, random };
  }

  /** The runner reads the history once before it asks a model. Programs that only read the session pass no context. */
  async #beginRun(context: Context): Promise<void> {
    if (context === undefined || this.recorder !== null || this.#begun.has(context)) return;
    // A run that resumes after an approval belongs to its first session, so no reset is due.
    const isNew = openCallsIn(this.#itemsOf(await this.log(context).view())).length === 0;
    await beforeRun({ ...this.#place(context), isNew }, this.#options);
    this.#begun.add(context);
  }

  /** The runner stores items when a run ends. The next run may have the same context and needs a new check. */
  #endRun(context: Context): void {
    if (context !== undefined) this.#begun.delete(context);
  }

  #itemsOf(view: LogView): readonly LiveItem[] {
    const items = this.#items.get(view.records) ?? readAgentItems(view, { onLoss: this.#options.onLoss ?? (() => {}) });
    this.#items.set(view.records, items);
    return items;
  }

  async #hashBefore(context: Context, operationId: string): Promise<unknown> {
    const log = this.log(context);
    const id = operationRecordId(await log.view(), operationId);
    for await (const page of this.#options.store.read(log.ref, { order: "descending" })) {
      const data = page.records.find((stored) => stored.id === id)?.record["data"];
      if (isFields(data)) return data["hash"];
    }
    return null;
  }

  async #append(context: Context, make: (view: LogView, log: FrameworkLog) => LogChange | null): Promise<void> {
    await withSdkErrors(async () => {
      const log = this.log(context);
      await log.append((view) => make(view, log));
    });
  }

  async #storable(items: readonly unknown[]): Promise<readonly LiveItem["value"][]> {
    const plain = items.map(plainJson);
    if (plain.includes(null)) throw await userError("An item of a session must be an object that JSON can hold.");
    return plain as readonly LiveItem["value"][];
  }
}

/** Creates a session of the OpenAI Agents SDK over a log of the store. @throws {ThroughlineError} INPUT_INVALID */
export function createAgentsSession(options: AgentsSessionOptions): AgentsSession {
  assertKnownOptions<AgentsSessionOptions>("createAgentsSession", options, table);
  return new AgentsSession(options);
}

function additions(view: LogView, log: FrameworkLog, items: readonly LiveItem["value"][]): LogChange {
  const made = openAiAgentsItems.drafts(items, log.place(view));
  return { drafts: made.flatMap(({ drafts }) => drafts) };
}

function openCallsIn(items: readonly LiveItem[]): readonly unknown[] {
  const answered = new Set(items.filter(({ value }) => isAgentResult(value)).map(({ value }) => value["callId"]));
  const calls = items.filter(({ value }) => isAgentCall(value)).map(({ value }) => value["callId"]);
  return calls.filter((callId) => !answered.has(callId));
}
