import {
  assertArgument,
  assertKnownOptions,
  isFields,
  linearExpression,
  loadExisting,
  optionKinds,
  type OptionTable,
  systemClock,
  systemRandom,
  throughlineDraft,
} from "@throughline/core/internal";
import {
  type Clock,
  hasErrorCode,
  openSession,
  type RandomSource,
  type RecordDraft,
  type SessionRef,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { modelFailure } from "@throughline/guard/internal";
import {
  beforeNextCall,
  beforeRun,
  type RunPolicyOptions,
  runPolicyTable,
} from "@throughline/foreign-formats/internal";
import { loadAgentQuery, type AgentQuery } from "./agent-query.ts";
import { promptWithHistory } from "./prompt-with-history.ts";
import { SdkMessageReader, type SdkMessageFacts } from "./sdk-messages.ts";
import { readSdkSessionId } from "./sdk-session-id.ts";
import { openSdkTurn, type SdkTurn } from "./sdk-turn.ts";

/** Configures `createSdkConversation`. */
export interface SdkConversationOptions extends RunPolicyOptions {
  /** Holds the store of the session; the caller closes it. */
  readonly store: SessionStore;
  /** Holds the address of the recorded session; the first `send` creates it. */
  readonly ref: SessionRef;
  /** Runs the agent. @default the SDK's own, loaded when it is first needed */
  readonly query?: AgentQuery | undefined;
  /** Holds the options for `query` in every run; `send` sets `resume` and `abortController`. @default {} */
  readonly queryOptions?: Readonly<Record<string, unknown>> | undefined;
  /** Limits the history that is sent to a session that replaces a lost one, in characters. @default 100_000 */
  readonly historyCharacters?: number | undefined;
  /** Sets how long a run may give no sign of life before another run may start, in milliseconds. @default 60_000 */
  readonly leaseMs?: number | undefined;
  /** Names the holder of the session's lock during a run, for people. @default "claude-agent-sdk" */
  readonly owner?: string | undefined;
  /** Times the records and leases. @default the system's */
  readonly clock?: Clock | undefined;
  /** Makes the ids of sessions, turns and records. @default the system's */
  readonly random?: RandomSource | undefined;
}

/** Configures one run. */
interface SendOptions {
  /** Ends the run with `ABORTED`; messages that have arrived are kept. @default none */
  readonly signal?: AbortSignal | undefined;
  /** Is called with every message of the SDK, unchanged. */
  readonly onMessage?: ((message: unknown) => void) | undefined;
}

/** States how a run ended. */
interface SdkRun {
  /** Holds the answer of the SDK's result, or its errors line by line; empty when the run ended without a result. */
  readonly text: string;
  /** Holds the SDK's name for the end of the run, such as `success` or `error_max_turns`. */
  readonly subtype: string;
  /** States whether the SDK's result reports an error. Its `subtype` names the error. */
  readonly isError: boolean;
  /** Holds the id of the SDK's session, which the next run resumes; null when the SDK stated none. */
  readonly sdkSessionId: string | null;
  /** Is true if the session named by the entry was lost, and a new session received the stored history. */
  readonly isRecovered: boolean;
}

/** Sends prompts to the Claude Agent SDK and stores the conversation in a session. */
export interface SdkConversation {
  /**
   * Runs the agent once. Resumes the SDK's session if there is one and stores every message. Also stores the returned
   * session id, which may differ.
   * @throws {ThroughlineError} INPUT_INVALID for an empty prompt, an unknown option, and a session that
   *   `createClaudeSessionStore` records; SEND_DENIED, SESSION_BUSY, TURN_FENCED, ABORTED, MODEL_SDK_MISSING; MODEL_FAILED with the SDK's
   *   error as cause; what the store throws
   */
  send(prompt: string, options?: SendOptions): Promise<SdkRun>;
}

const table: OptionTable<SdkConversationOptions> = {
  ...runPolicyTable,
  store: optionKinds.required(optionKinds.objectWith("load", "append")),
  ref: optionKinds.required(optionKinds.object),
  query: optionKinds.callback,
  queryOptions: optionKinds.object,
  historyCharacters: optionKinds.integer({ min: 0 }),
  leaseMs: optionKinds.integer({ min: 1 }),
  owner: optionKinds.filledText,
  clock: optionKinds.objectWith("nowMs", "sleep"),
  random: optionKinds.objectWith("uuid"),
};

const sendTable: OptionTable<SendOptions> = { signal: optionKinds.signal, onMessage: optionKinds.callback };

/**
 * Creates a conversation that is stored in a session, with the SDK's own session behind it. The first message creates
 * the session.
 * @throws {ThroughlineError} INPUT_INVALID for an option that is unknown, missing or of another type
 */
export function createSdkConversation(options: SdkConversationOptions): SdkConversation {
  assertKnownOptions<SdkConversationOptions>("createSdkConversation", options, table);
  const { store, ref, random = systemRandom, clock = systemClock } = options;
  return {
    async send(prompt, given = {}) {
      assertArgument("send", "prompt", prompt, optionKinds.filledText);
      assertKnownOptions<SendOptions>("send", given, sendTable);
      assertNotAborted(given.signal);
      const query = options.query ?? (await loadAgentQuery());
      await beforeRun({ store, ref, clock, random, isNew: true }, options);
      await openSession(store, ref, { random });
      const before = await loadExisting(store, ref);
      if (before.entry["claudeSession"] !== undefined) throw mirrored(ref);
      const { leaseMs = 60_000, owner = "claude-agent-sdk" } = options;
      const user: RecordDraft = { type: "message", message: { role: "user", content: prompt } };
      const turn = await openSdkTurn({ store, ref, clock, random, leaseMs, owner }, [user]);
      try {
        const resume = readSdkSessionId(before.entry);
        const mayContinue = (): Promise<void> => beforeNextCall({ store, ref }, options);
        const ask = (request: Pick<RunRequest, "text" | "resume">): Promise<RunEnd> =>
          runQuery({ ...request, query, turn, mayContinue, options: given, queryOptions: options.queryOptions ?? {} });
        const first = await ask({ text: prompt, resume });
        if (resume === null || !first.isSessionLost) return await finish(turn, first, false);
        // The SDK's files were deleted or lie on another machine, while the log holds the conversation. The run is
        // repeated once.
        await turn.setSdkSessionId(null, [
          throughlineDraft("note", { kind: "sdk-session-lost", sdkSessionId: resume }),
        ]);
        const told = await promptWithHistory(store, ref, {
          prompt,
          beforeSeq: before.head.lastSeq + 1,
          maxCharacters: options.historyCharacters ?? 100_000,
        });
        return await finish(turn, await ask({ text: told, resume: null }), true);
      } catch (error) {
        await turn.fail(hasErrorCode(error, "ABORTED") ? "aborted" : "failed");
        throw error;
      }
    },
  };
}

/** A session with both recorders would store the same conversation twice. */
function mirrored({ key }: SessionRef): ThroughlineError {
  return new ThroughlineError("INPUT_INVALID", `createClaudeSessionStore records the session "${key}".`, {
    outcome: "not-applied",
    remedy: "Give the conversation another session, or call the SDK's query with the session store.",
  });
}

interface RunRequest {
  readonly query: AgentQuery;
  readonly turn: SdkTurn;
  /** Is called when a tool has ended, because the SDK asks the model next. @throws {ThroughlineError} SEND_DENIED */
  readonly mayContinue: () => Promise<void>;
  readonly text: string;
  readonly resume: string | null;
  readonly options: SendOptions;
  readonly queryOptions: Readonly<Record<string, unknown>>;
}

interface RunEnd {
  readonly result: SdkMessageFacts["result"];
  readonly sdkSessionId: string | null;
  readonly isSessionLost: boolean;
  readonly error: unknown;
}

async function runQuery({
  query,
  turn,
  mayContinue,
  text,
  resume,
  options,
  queryOptions,
}: RunRequest): Promise<RunEnd> {
  const abortController = new AbortController();
  const abort = (): void => abortController.abort(options.signal?.reason);
  // The caller may have aborted while the session was opened. No run starts then.
  assertNotAborted(options.signal);
  options.signal?.addEventListener("abort", abort, { once: true });
  const reader = new SdkMessageReader();
  let result: SdkMessageFacts["result"] = null;
  let sdkSessionId: string | null = null;
  try {
    const asked = { ...queryOptions, ...(resume === null ? {} : { resume }), abortController };
    for await (const message of query({ prompt: text, options: asked })) {
      options.onMessage?.(message);
      const facts = reader.read(message);
      // A reply may mention missing sessions, so only an error counts. A successful run must not be repeated.
      const isLost = facts.result?.isError === true && resume !== null && saysLost(facts.result.text);
      if (isLost) return { result: null, sdkSessionId: null, isSessionLost: true, error: null };
      // The id is stored on arrival, so that a killed run can be resumed.
      if (facts.sdkSessionId !== null && facts.sdkSessionId !== sdkSessionId) {
        sdkSessionId = facts.sdkSessionId;
        await turn.setSdkSessionId(sdkSessionId, facts.drafts);
      } else if (facts.drafts.length > 0) await turn.append(facts.drafts);
      if (facts.drafts.some(isToolResult)) await mayContinue();
      result = facts.result ?? result;
    }
    assertNotAborted(options.signal);
    return { result, sdkSessionId, isSessionLost: false, error: null };
  } catch (error) {
    if (ThroughlineError.isInstance(error)) {
      abortController.abort(error);
      throw error;
    }
    if (options.signal?.aborted === true) throw aborted(error);
    return { result, sdkSessionId, isSessionLost: resume !== null && saysLost(wordsOf(error)), error };
  } finally {
    options.signal?.removeEventListener("abort", abort);
  }
}

function isToolResult(draft: RecordDraft): boolean {
  return isFields(draft["message"]) && draft["message"]["role"] === "toolResult";
}

async function finish(turn: SdkTurn, end: RunEnd, isRecovered: boolean): Promise<SdkRun> {
  if (end.error !== null) {
    const { details, remedy, retryable } = modelFailure(end.error);
    const message = `The Claude Agent SDK failed: ${wordsOf(end.error)}`;
    throw new ThroughlineError("MODEL_FAILED", message, { cause: end.error, details, remedy, retryable });
  }
  await turn.close();
  const { text = "", subtype = "ended", isError = false } = end.result ?? {};
  return { text, subtype, isError, sdkSessionId: end.sdkSessionId, isRecovered };
}

/** The SDK states the error at the start of the text. The rest may be any output of the program. */
const mostErrorCharacters = 8000;
const lostConversation = linearExpression("no conversation found with session id|session .{0,80}not found", "i");

function saysLost(text: string): boolean {
  return lostConversation.test(text.slice(0, mostErrorCharacters));
}

function wordsOf(error: unknown): string {
  return error instanceof Error
    ? error.message
    : typeof error === "string"
      ? error
      : "it threw a value that is not an error";
}

/** Stops an aborted run before its next step. @throws {ThroughlineError} ABORTED */
function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw aborted(signal.reason);
}

function aborted(cause: unknown): ThroughlineError {
  return new ThroughlineError("ABORTED", "The run was aborted; what had arrived is kept.", { cause });
}
