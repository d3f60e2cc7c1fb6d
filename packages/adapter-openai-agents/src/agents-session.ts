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

/** Whose session a run is about. */
export interface SessionScope {
  /** The agent of the session. @default the option `agentId` */
  readonly agentId?: string;
  /** The namespace of the session. @default the option `namespace` */
  readonly namespace?: string;
}

/**
 * Options of `createAgentsSession`. `sendPolicy` and `reset` are checked when a run reads the history, which is before it asks a
 * model, and by `recordRun`, whose own options come before these.
 */
export interface AgentsSessionOptions extends AdapterOptions, RunPolicyOptions {
  /** The SDK's id of the session, any text. @default a random UUID */
  readonly sessionId?: string;
  /** A session of the store, whoever began it. @default the one that `sessionId` names */
  readonly ref?: SessionRef;
  /** Whose session it is, by the context of a run. @default the same for every run */
  readonly scopeOf?: (runContext: RunContext<unknown> | undefined) => SessionScope;
  /** Compacts the session; called by the runner after a turn. @default the session is not compacted */
  readonly compact?: (
    ref: SessionRef,
    args: OpenAIResponsesCompactionArgs,
  ) => Promise<OpenAIResponsesCompactionResult | null>;
  /** Called for what another program wrote and has no place among items. @default none */
  readonly onLoss?: LiveItemsOptions["onLoss"];
  /** Whether `clearSession` erases the session for good. @default false: it is reset, and the log keeps the records */
  readonly purge?: boolean;
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

/** The context of a run, as the runner hands it over; undefined outside of a run. */
type Context = RunContext<unknown> | undefined;

/**
 * A session of the OpenAI Agents SDK over a log: what `run(agent, input, { session })` takes. Created by `createAgentsSession`.
 * What the store throws comes from every method as the cause of the SDK's `UserError`; its message ends with the code.
 */
export class AgentsSession {
  readonly acceptsRunContext = true as const;
  /** The run that records into it; null when none does. */
  recorder: RunRecorder | null = null;
  /** Absent where nothing compacts: the runner looks for it. */
  readonly runCompaction?: (
    args?: OpenAIResponsesCompactionArgs,
    runContext?: Context,
  ) => Promise<OpenAIResponsesCompactionResult | null>;
  readonly #options: AgentsSessionOptions;
  readonly #sessionId: string;
  readonly #logs = new Map<string, FrameworkLog>();
  /** Contexts of runs that were let begin. */
  readonly #begun = new WeakSet<NonNullable<Context>>();
  /** The items of a view, made once. */
  readonly #items = new WeakMap<LogView["records"], readonly LiveItem[]>();

  constructor(options: AgentsSessionOptions) {
    this.#options = options;
    this.#sessionId = options.sessionId ?? options.ref?.key ?? adapterOptions(options).random.uuid();
    const { compact } = options;
    if (compact !== undefined)
      this.runCompaction = (args = {}, context = undefined) => compact(this.log(context).ref, args);
  }

  /** The log behind it, for the context of a run. */
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

  /** Checks what a run of this session has to keep. `recordRun` calls it. @throws {ThroughlineError} SEND_DENIED */
  async beforeRun(policy: RunPolicyOptions, isNew: boolean): Promise<void> {
    await beforeRun({ ...this.#place(undefined), isNew }, { ...this.#options, ...policy });
  }

  /** Checks whether a run may ask a model again. `recordRun` calls it. @throws the SDK's UserError with SEND_DENIED */
  async beforeNextCall(policy: RunPolicyOptions): Promise<void> {
    await withSdkErrors(() => beforeNextCall(this.#place(undefined), { ...this.#options, ...policy }));
  }

  /** The SDK's id of the session: `sessionId`, else the key of `ref`, else the UUID that was made. */
  getSessionId(): Promise<string> {
    return Promise.resolve(this.#sessionId);
  }

  /**
   * The items of the history, oldest first, as copies.
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
      // Objects of the caller's own in each call: the runner compares them by identity.
      return wanted.map(({ value }) => asItem(withBytes(value) as LiveItem["value"]));
    });
  }

  /**
   * Appends items, except those that `recordRun` has stored already.
   * @throws the SDK's UserError for an item that is not a JSON object, and with the ThroughlineError of a failed append
   */
  async addItems(items: AgentInputItem[], context?: Context): Promise<void> {
    this.#endRun(context);
    const added = await this.#storable(items);
    // What the recorder stores right now would be stored twice.
    await this.recorder?.settled();
    const missing = this.recorder === null ? added : this.recorder.unrecorded(added);
    if (missing.length > 0) await this.recordItems(missing, context);
  }

  /** Appends items as they are. `recordRun` calls it; the runner hands them over again. @throws as `addItems` */
  async recordItems(items: readonly LiveItem["value"][], context?: Context): Promise<void> {
    await this.#append(context, (view, log) => additions(view, log, items));
  }

  /** The ids of the calls that have no result. `recordRun` asks for them. @throws as `getItems` */
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

  /** Replaces function calls, each found by its `callId`, in one append each. An unknown `callId` changes nothing. */
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
   * Appends items, or replaces the end of the history, in one append. Repeating it with the same `operationId`
   * changes nothing.
   * @throws the SDK's UserError for an invalid transaction, another one under that id, and an end that differs from
   *   `expectedSuffix`
   */
  async applyHistoryTransaction(args: SessionHistoryTransactionArgs, context?: Context): Promise<void> {
    this.#endRun(context);
    const { operationId, hash, expectedSuffix, items } = await checkTransaction(args);
    await this.recorder?.settled();
    // Once: an item that was found is not found again where the append is repeated.
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
      // An operation that lies before what is read of the log: its record is there, so it was applied.
      if (!hasErrorCode((error as { cause?: unknown }).cause, "RECORD_ID_TAKEN")) throw error;
      refusal = (await this.#hashBefore(context, operationId)) === hash ? "" : transactionTexts.other;
    }
    if (refusal !== null && refusal !== "") throw await userError(refusal);
  }

  /** Makes these items the whole history. The log keeps the records from before. */
  replaceHistoryWithCompaction(items: AgentInputItem[], context?: Context): Promise<void> {
    return this.#append(context, (view, log) =>
      compactAgentItems(
        items.map((item) => plainJson(item) ?? {}),
        this.#itemsOf(view),
        log.place(view),
      ),
    );
  }

  /** The state of the run that stopped for an approval, for `RunState.fromString`; null when none waits. */
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

  /** The runner reads the history once before it asks a model. Programs that look at the session have no context. */
  async #beginRun(context: Context): Promise<void> {
    if (context === undefined || this.recorder !== null || this.#begun.has(context)) return;
    // A run that is resumed after an approval belongs to the session that it was begun in.
    const isNew = openCallsIn(this.#itemsOf(await this.log(context).view())).length === 0;
    await beforeRun({ ...this.#place(context), isNew }, this.#options);
    this.#begun.add(context);
  }

  /** The runner stores items when a run ends: the next one may have the same context. */
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

/** A session of the OpenAI Agents SDK over a log of the store. @throws {ThroughlineError} INPUT_INVALID */
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
