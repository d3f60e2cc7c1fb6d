import {
  type AgentTool,
  type AgentToolResult,
  type Clock,
  hasErrorCode,
  type RecordDraft,
  type SessionRef,
  type ToolCallBlock,
} from "@throughline/core";
import { argumentProblem } from "@throughline/core/internal";
import { approvalDraft, type InterruptedCall, isApproval } from "./approval-record.ts";
import { errorText } from "./error-text.ts";
import { fitContent } from "./fit-record.ts";
import type { Emit } from "./session-event.ts";
import { contentProblem } from "./content-problem.ts";
import type { ApproveTool, SessionContent } from "./session-options.ts";

type ToolOutput = string | AgentToolResult;

export interface RunToolsOptions {
  readonly ref: SessionRef;
  readonly turnId: string;
  readonly tools: ReadonlyMap<string, AgentTool>;
  readonly isParallel: boolean;
  readonly approve: ApproveTool | null;
  /** Is true when several calls may be decided on at once. */
  readonly asksInParallel: boolean;
  readonly signal: AbortSignal;
  readonly emit: Emit | null;
  readonly clock: Clock;
  /** Limits the size of one record, in bytes. */
  readonly recordBytes: number;
  readonly append: (drafts: readonly RecordDraft[]) => Promise<unknown>;
}

/** `isCutOff` is true when the reply reached its length limit, so its last call may be incomplete. */
export interface RequestedCalls {
  readonly calls: readonly ToolCallBlock[];
  readonly isCutOff: boolean;
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
 * tool does. Results that arrive during a write are written together.
 */
export async function runTools({ calls, isCutOff }: RequestedCalls, options: RunToolsOptions): Promise<void> {
  const finished: RecordDraft[] = [];
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
  const runOne = async (call: ToolCallBlock, index: number): Promise<void> => {
    const isIncomplete = isCutOff && index === calls.length - 1;
    const result = isIncomplete
      ? failed("The reply reached its length limit in this call. It was not run; make it again, shorter.")
      : await resultOf(call, options, keep, ask);
    await keep(resultDraft(call.id, call.name, result));
  };
  if (options.isParallel) {
    const outcomes = await Promise.allSettled(calls.map(runOne));
    const problem = outcomes.find((outcome) => outcome.status === "rejected");
    if (problem !== undefined) throw problem.reason;
  } else {
    for (const [index, call] of calls.entries()) await runOne(call, index);
  }
}

async function resultOf(
  call: ToolCallBlock,
  options: RunToolsOptions,
  keep: (draft: RecordDraft) => Promise<void>,
  ask: Ask,
): Promise<Result> {
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
  const { refusal, record } = await orAborted<Decision>(
    ask(() => decisionOn(call, options)),
    signal,
    {
      refusal: failed(notRun),
      record: null,
    },
  );
  // The decision is stored before the tool runs. Whatever the tool does, the log then states who allowed it.
  if (record !== null) await keep(record);
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
  /** Holds the record of the decision; null when no decision was asked for. */
  readonly record: RecordDraft | null;
}

/** A call without a decision must not run, so an error counts as a refusal. */
async function decisionOn(
  call: ToolCallBlock,
  { approve, signal, turnId, ref, clock }: RunToolsOptions,
): Promise<Decision> {
  if (approve === null) return { refusal: null, record: null };
  // The signal may have aborted while the call waited for earlier questions.
  if (signal.aborted) return { refusal: failed(notRun), record: null };
  const { id: callId, name } = call;
  const askedMs = clock.nowMs();
  try {
    const args = JSON.parse(JSON.stringify(call.arguments)) as Readonly<Record<string, unknown>>;
    const decision: unknown = await approve({ id: callId, name, arguments: args }, { signal, callId, turnId, ref });
    const record = approvalDraft(decision, { turnId, callId, tool: name, askedMs, decidedMs: clock.nowMs() });
    if (isApproval(decision)) return { refusal: null, record };
    const { refuse } = (decision ?? {}) as { readonly refuse?: unknown };
    const words = typeof refuse === "string" && refuse.trim() !== "" ? refuse : "The call was refused; it was not run.";
    return { refusal: failed(words), record };
  } catch (error) {
    const words = `The call was not run: asking for its approval failed: ${errorText(error)}`;
    return { refusal: failed(words), record: null };
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
    return failed(fitContent(errorText(error), recordBytes) || "The tool failed.");
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

const interruptedTexts: Readonly<Record<InterruptedCall, string>> = {
  "may-have-run": "The process ended while this call was under way. It may have run.",
  undecided: "The process ended before anybody allowed this call. It was not run.",
  refused: "The call was refused; it was not run.",
};

/** Creates the result of a call that a turn left without one when its process ended. */
export function interruptedResult(toolCallId: string, toolName: string, known: InterruptedCall): RecordDraft {
  return resultDraft(toolCallId, toolName, failed(interruptedTexts[known]));
}
