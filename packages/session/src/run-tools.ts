import {
  type AgentTool,
  type AgentToolResult,
  type Clock,
  hasErrorCode,
  type RecordDraft,
  type SessionRef,
  type ToolCallBlock,
} from "@throughline/core";
import { causeText, argumentProblem } from "@throughline/core/internal";
import { approvalDraft, isApproval, isWait } from "./approval-record.ts";
import { fitContent } from "./fit-record.ts";
import type { Emit } from "./session-event.ts";
import { contentProblem } from "./content-problem.ts";
import type { ApproveTool, SessionContent } from "./session-options.ts";

type ToolOutput = string | AgentToolResult;

/** Is the answer to a question that the log has already. */
export const keepsWaiting: unique symbol = Symbol("keeps waiting");

export interface RunToolsOptions {
  readonly ref: SessionRef;
  readonly turnId: string;
  readonly tools: ReadonlyMap<string, AgentTool>;
  readonly isParallel: boolean;
  readonly approve: ((...call: Parameters<ApproveTool>) => unknown) | null;
  /**
   * Returns the decision that the log has on a call of an earlier turn. The first decision in the log holds, and other
   * processes may write decisions.
   */
  readonly recorded: (callId: string) => { readonly isAllowed: boolean; readonly words: string | null } | null;
  /** Is true when several calls may be decided on at once. */
  readonly asksInParallel: boolean;
  readonly signal: AbortSignal;
  readonly emit: Emit | null;
  readonly clock: Clock;
  /** Limits the size of one record, in bytes. */
  readonly recordBytes: number;
  readonly append: (drafts: readonly RecordDraft[]) => Promise<unknown>;
}

/** `cutOffId` names the last call of a reply that reached its length limit, so the call may be incomplete. */
export interface RequestedCalls {
  readonly calls: readonly ToolCallBlock[];
  readonly cutOffId: string | null;
}

interface Result {
  readonly content: ToolOutput;
  readonly isError: boolean;
}

const failed = (content: SessionContent): Result => ({
  content: typeof content === "string" ? content : { content },
  isError: true,
});
const notRun = "The turn was aborted before this call was run.";
const mayHaveRun = "The turn was aborted while this call ran. It may have had its effect, in part or whole.";

/**
 * Runs the calls of a reply and appends each result when it arrives. Every call gets exactly one result, whatever the
 * tool does, unless its decision is left to a later time. Results that arrive during a write are written together.
 *
 * @returns the records of new questions that wait for an answer; null when no call waits
 */
export async function runTools(
  { calls, cutOffId }: RequestedCalls,
  options: RunToolsOptions,
): Promise<readonly RecordDraft[] | null> {
  const finished: RecordDraft[] = [];
  let questions: RecordDraft[] | null = null;
  const ask = options.asksInParallel ? <Value>(question: () => Value): Value => question() : oneByOne();
  let writing: Promise<void> | null = null;
  const write = async (): Promise<void> => {
    while (finished.length > 0) await appendResults(finished.splice(0), options);
    writing = null;
  };
  const keep = async (draft: RecordDraft): Promise<void> => {
    finished.push(draft);
    await (writing ??= write());
  };
  const runOne = async (call: ToolCallBlock): Promise<void> => {
    const result =
      call.id === cutOffId && call === calls.at(-1)
        ? failed("The reply reached its length limit in this call. It was not run; make it again, shorter.")
        : await resultOf(call, options, keep, ask);
    if ("question" in result) questions = [...(questions ?? []), ...result.question];
    else await keep(resultDraft(call.id, call.name, result));
  };
  if (options.isParallel) {
    const outcomes = await Promise.allSettled(calls.map(runOne));
    const problem = outcomes.find((outcome) => outcome.status === "rejected");
    if (problem !== undefined) throw problem.reason;
  } else {
    for (const call of calls) await runOne(call);
  }
  return questions;
}

async function resultOf(
  call: ToolCallBlock,
  options: RunToolsOptions,
  keep: (draft: RecordDraft) => Promise<void>,
  ask: Ask,
): Promise<Result | { readonly question: readonly RecordDraft[] }> {
  const { signal, emit } = options;
  const { id: callId, name: toolName } = call;
  if (signal.aborted) return failed(notRun);
  const tool = options.tools.get(toolName);
  if (tool === undefined) return failed(`There is no tool ${JSON.stringify(toolName)}.${namesOf(options.tools)}`);
  if (call.partialJson !== undefined)
    return failed(
      "The call was not run: its arguments are not a JSON object, are nested too deeply, or are too large.",
    );
  const problem = argumentProblem(call.arguments, tool.definition.inputSchema);
  if (problem !== null) return failed(`The call was not run: ${problem}.`);
  const aborted = { refusal: failed(notRun), record: null, waits: false };
  const decision = await orAborted<Decision>(
    ask(() => decisionOn(call, options)),
    signal,
    aborted,
  );
  const { record, waits } = decision;
  if (waits) return { question: record === null ? [] : [record] };
  // The decision is stored before the tool runs. Whatever the tool does, the log then states who allowed it.
  if (record !== null) await keep(record);
  const refusal = record === null ? decision.refusal : refusalIn(options.recorded(callId), decision.refusal);
  if (refusal !== null) {
    emit?.({ name: "tool.refused", callId, toolName });
    return refusal;
  }
  if (signal.aborted) return failed(notRun);
  emit?.({ name: "tool.started", callId, toolName });
  const result = await orAborted(runTool(tool, call, options), signal, failed(mayHaveRun));
  emit?.({ name: "tool.finished", callId, toolName, isError: result.isError });
  return result;
}

type Ask = (question: () => Promise<Decision>) => Promise<Decision>;

/** The questions run one after another. A person who sees two questions at once could answer both with one word. */
function oneByOne(): Ask {
  let last: Promise<unknown> = Promise.resolve();
  return (question) => {
    const answer = last.then(question);
    last = answer;
    return answer;
  };
}

interface Decision {
  /** Is null when the call may run. */
  readonly refusal: Result | null;
  /** Holds the record of the decision; null when the log has it already, and when no decision was asked for. */
  readonly record: RecordDraft | null;
  /** Is true when the decision is left to a later time. */
  readonly waits: boolean;
}

export const refusedText = "The call was refused; it was not run.";

/** A decision in the log holds. Null means that the call may run. */
function refusalIn(recorded: ReturnType<RunToolsOptions["recorded"]>, otherwise: Result | null): Result | null {
  if (recorded === null) return otherwise;
  return recorded.isAllowed ? null : (otherwise ?? failed(recorded.words ?? refusedText));
}

/** A call without a decision must not run, so an error counts as a refusal. */
async function decisionOn(call: ToolCallBlock, options: RunToolsOptions): Promise<Decision> {
  const { approve, signal, turnId, ref, clock } = options;
  const recorded = options.recorded(call.id);
  if (recorded !== null) return { refusal: refusalIn(recorded, null), record: null, waits: false };
  if (approve === null) return { refusal: null, record: null, waits: false };
  // The signal may have aborted while the call waited for earlier questions.
  if (signal.aborted) return { refusal: failed(notRun), record: null, waits: false };
  const { id: callId, name } = call;
  const askedMs = clock.nowMs();
  try {
    const args = JSON.parse(JSON.stringify(call.arguments)) as Readonly<Record<string, unknown>>;
    const decision = await approve({ id: callId, name, arguments: args }, { signal, callId, turnId, ref });
    if (decision === keepsWaiting) return { refusal: null, record: null, waits: true };
    const record = approvalDraft(decision, { turnId, callId, tool: name, askedMs, decidedMs: clock.nowMs() });
    if (isWait(decision)) return { refusal: null, record, waits: true };
    if (isApproval(decision)) return { refusal: null, record, waits: false };
    const { refuse } = (decision ?? {}) as { readonly refuse?: unknown };
    const words = typeof refuse === "string" && refuse.trim() !== "" ? refuse : refusedText;
    return { refusal: failed(words), record, waits: false };
  } catch (error) {
    const words = `The call was not run: asking for its approval failed: ${causeText(error)}`;
    return { refusal: failed(words), record: null, waits: false };
  }
}

async function runTool(tool: AgentTool, call: ToolCallBlock, options: RunToolsOptions): Promise<Result> {
  const { signal, turnId, ref, recordBytes } = options;
  try {
    // The tool gets a copy. A tool that changes its arguments must not change the stored call or the next request.
    const args = JSON.parse(JSON.stringify(call.arguments)) as Readonly<Record<string, unknown>>;
    const content = fitOutput(outputOf(await tool.run(args, { signal, callId: call.id, turnId, ref })), recordBytes);
    return { content, isError: typeof content === "object" && content.isError === true };
  } catch (error) {
    return failed(fitContent(causeText(error), recordBytes) || "The tool failed.");
  }
}

/**
 * Programs without type checks may return any value. Other values than an output are shown as JSON, and undefined as an
 * empty text.
 */
function outputOf(output: unknown): ToolOutput {
  if (typeof output === "string") return output;
  const content: unknown = typeof output === "object" && output !== null && "content" in output ? output.content : null;
  if (typeof content === "string") return output as ToolOutput;
  if (Array.isArray(content)) return { ...(output as AgentToolResult), content: content.map(shownBlock) };
  return output === undefined ? "" : (JSON.stringify(output) ?? "");
}

/**
 * Cuts content that is too large for a record. Details over half of that size, or that are not JSON, are replaced by a
 * note, because no model sees them.
 */
function fitOutput(output: ToolOutput, recordBytes: number): ToolOutput {
  if (typeof output === "string") return fitContent(output, recordBytes) as string;
  const detailBytes = jsonBytes(output.details);
  if (detailBytes !== null && detailBytes <= recordBytes / 2)
    return { ...output, content: fitContent(output.content, recordBytes - detailBytes) };
  const reason = detailBytes === null ? "are not JSON" : `have ${detailBytes} bytes, too many to be kept`;
  const details = { leftOut: `The details ${reason}.` };
  return { ...output, content: fitContent(output.content, recordBytes), details };
}

/** Returns null for a value that JSON cannot represent. */
function jsonBytes(value: unknown): number | null {
  try {
    return Buffer.byteLength(JSON.stringify(value) ?? "");
  } catch {
    return null;
  }
}

/** One invalid block would make the whole result unreadable, so it becomes text. */
function shownBlock(block: unknown): Exclude<SessionContent, string>[number] {
  if (contentProblem([block]) === null) return block as Exclude<SessionContent, string>[number];
  return { type: "text", text: typeof block === "string" ? block : (JSON.stringify(block) ?? "") };
}

/** A tool or an approval hook that ignores the signal must not block the turn. */
function orAborted<Outcome>(running: Promise<Outcome>, signal: AbortSignal, aborted: Outcome): Promise<Outcome> {
  return new Promise((resolve) => {
    const abort = (): void => resolve(aborted);
    // The tool itself, or a listener of its start, may have aborted the turn already.
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    void running.then((result) => {
      signal.removeEventListener("abort", abort);
      resolve(result);
    });
  });
}

function namesOf(tools: ReadonlyMap<string, AgentTool>): string {
  return tools.size === 0 ? "" : ` There are: ${[...tools.keys()].join(", ")}.`;
}

export function resultDraft(toolCallId: string, toolName: string, { content: output, isError }: Result): RecordDraft {
  const { content, details } = typeof output === "string" ? { content: output, details: undefined } : output;
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return {
    type: "message",
    message: {
      role: "toolResult",
      toolCallId,
      toolName,
      content: blocks,
      isError,
      ...(details === undefined ? {} : { details }),
    },
  };
}

/** A result that the store refuses is replaced by a note. A call without a result would make the history invalid. */
async function appendResults(drafts: readonly RecordDraft[], options: RunToolsOptions): Promise<void> {
  try {
    await options.append(drafts);
  } catch (error) {
    if (!hasErrorCode(error, "RECORD_TOO_LARGE", "BATCH_TOO_LARGE", "RECORD_INVALID")) throw error;
    const [first] = drafts;
    if (drafts.length > 1) {
      for (const draft of drafts) await appendResults([draft], options);
    } else if (first?.type !== "message") {
      throw error;
    } else {
      const { toolCallId, toolName } = first["message"] as { readonly toolCallId: string; readonly toolName: string };
      await options.append([
        resultDraft(toolCallId, toolName, failed(`The result could not be kept: ${error.message}`)),
      ]);
    }
  }
}
