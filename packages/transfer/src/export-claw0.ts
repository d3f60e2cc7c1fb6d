import {
  readWindow,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type StoredRecord,
} from "@throughline/core";
import { createWorkSlices, runInSlices, serializeRecord, type Steps } from "@throughline/core/internal";
import {
  type AnthropicBlock,
  type AnthropicMessage,
  type AnthropicResultBlock,
  type NeutralMessage,
  type OmitReason,
  type RepairRule,
  contextSteps,
  providerMappings,
  renderSteps,
} from "@throughline/history/internal";
import type { Context } from "@throughline/history";
import { definedFields } from "./database-session.ts";
import { noteSeqs, receiptChain } from "./import-receipt.ts";
import type { ExportOptions } from "./export-types.ts";

type Line = Readonly<Record<string, unknown>>;

/**
 * Writes the context of a session as the flat lines of claw0. Each line has its time in
 * seconds. The types are `user`, `assistant`, `tool_use` and `tool_result`. claw0 replays a file from its first line to its last, so the file holds the prompt a model would
 * get now. That is the summary and the messages after it on the current branch, repaired for Anthropic's API. Omissions
 * are reported with the number of records for each reason.
 *
 * The header is that of claw0's first version. Its readers skip an unknown type; an import takes key and id from it.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, RECORD_FROM_NEWER_VERSION, ABORTED
 */
export async function* claw0Lines(
  store: SessionStore,
  ref: SessionRef,
  { signal, onRemark }: ExportOptions,
): AsyncGenerator<string> {
  const { state, records } = await readWindow(store, ref, signal === undefined ? {} : { signal });
  const context = await runInSlices(contextSteps(records, { headId: state.head.headId }));
  const { messages, repairs } = await runInSlices(claw0Messages(context));
  for (const { reason, count } of leftOut(state, records, context)) {
    const text = `${count} ${count === 1 ? "record" : "records"}: ${reasonTexts[reason]}`;
    onRemark?.({ seq: null, id: null, what: "left-out", reason: text, records: count });
  }
  for (const [rule, count] of counted(repairs)) {
    const text = `${count} ${count === 1 ? "repair" : "repairs"} for Anthropic's API: ${rule}`;
    onRemark?.({ seq: null, id: null, what: "changed", reason: text, records: 0 });
  }
  if (messages.length > 0)
    onRemark?.({ seq: null, id: null, what: "left-out", reason: fieldsWithoutPlace, records: 0 });
  const origins = await runInSlices(originsOf(context.messages, state.createdAtMs));
  yield serializeRecord({
    type: "session",
    id: state.sessionId,
    key: ref.key,
    created: new Date(state.createdAtMs).toISOString(),
  });
  const slices = createWorkSlices();
  for (const message of messages) {
    for (const line of flatLines(message, origins)) yield serializeRecord(line);
    const pause = slices.next();
    if (pause !== undefined) await pause;
  }
}

/** Removes the user message that the API needs after an answer, because claw0 waits for the user instead. */
function* claw0Messages(context: Context): Steps<{
  readonly messages: readonly AnthropicMessage[];
  readonly repairs: readonly RepairRule[];
}> {
  const options = { trailingAssistant: "continue" } as const;
  const { messages, repairs } = yield* renderSteps(context, providerMappings.anthropic({}), options);
  const rules = repairs.map(({ rule }) => rule);
  const isContinued = rules.includes("continuation-added");
  return {
    messages: isContinued ? messages.slice(0, -1) : messages,
    repairs: rules.filter((rule) => rule !== "continuation-added"),
  };
}

/** claw0 puts tool calls behind the assistant line that precedes them. */
function* flatLines({ role, content }: AnthropicMessage, origins: BlockOrigins): Generator<Line> {
  if (role === "assistant") {
    // A signature covers thinking together with the calls behind it, so they stay in one line.
    const isSigned = content.some(({ type }) => type === "thinking" || type === "redacted_thinking");
    const calls = isSigned ? [] : content.slice(content.findLastIndex(({ type }) => type !== "tool_use") + 1);
    const first = content.slice(0, content.length - calls.length);
    if (first.length > 0) yield { type: "assistant", content: first, ...origins.fieldsOf(first[0]) };
    for (const call of calls) {
      if (call.type !== "tool_use") continue;
      const { id, name, input } = call;
      yield { type: "tool_use", tool_use_id: id, name, input, ...origins.fieldsOf(call) };
    }
    return;
  }
  for (const block of content) {
    if (block.type !== "tool_result") continue;
    const { tool_use_id: id, content: body = [], is_error: isError } = block;
    const said = textOrBlocks(body);
    yield {
      type: "tool_result",
      tool_use_id: id,
      content: said,
      // The reader of the tutorial's first version expects the result in this field.
      output: said,
      ...(isError === true ? { is_error: true } : {}),
      ...origins.fieldsOf(block),
    };
  }
  const rest = content.filter(({ type }) => type !== "tool_result");
  if (rest.length > 0) yield { type: "user", content: textOrBlocks(rest), ...origins.fieldsOf(rest[0]) };
}

/** claw0 writes a single text as a string; only other content uses blocks. */
function textOrBlocks(blocks: readonly (AnthropicBlock | AnthropicResultBlock)[]): unknown {
  const [only] = blocks;
  if (only === undefined) return "";
  return blocks.length === 1 && only.type === "text" ? only.text : blocks;
}

/**
 * Maps blocks to the messages they come from. A block added for the API has no origin and takes the time of the block
 * before it.
 */
class BlockOrigins {
  private readonly byBlock = new Map<string, NeutralMessage[]>();
  private lastMs: number;

  constructor(startMs: number) {
    this.lastMs = startMs;
  }

  take(message: NeutralMessage): void {
    if (message.role === "toolResult") this.note(`result ${message.toolCallId}`, message);
    for (const block of message.content) {
      if (block.type === "toolCall") this.note(`call ${block.id}`, message);
      if (block.type === "text") this.note(`text ${block.text}`, message);
      if (block.type === "thinking") this.note(`thinking ${block.signature}`, message);
    }
  }

  /** Adds the time in seconds, in the form Python's clock returns, and a reply's model. */
  fieldsOf(block: AnthropicBlock | undefined): Line {
    const origin = this.byBlock.get(nameOf(block))?.shift();
    this.lastMs = origin?.tsMs ?? this.lastMs;
    const ts = this.lastMs / 1000;
    if (origin?.role !== "assistant") return { ts };
    // claw0 ignores these fields. Other readers may need them, because signed thinking is valid only for the model that
    // wrote it.
    const { api, provider, model } = origin;
    return { ...definedFields({ api, provider, model }), ts };
  }

  private note(name: string, message: NeutralMessage): void {
    const known = this.byBlock.get(name);
    if (known === undefined) this.byBlock.set(name, [message]);
    else known.push(message);
  }
}

function* originsOf(messages: readonly NeutralMessage[], startMs: number): Steps<BlockOrigins> {
  const origins = new BlockOrigins(messages[0]?.tsMs ?? startMs);
  for (const message of messages) {
    origins.take(message);
    yield;
  }
  return origins;
}

function nameOf(block: AnthropicBlock | undefined): string {
  switch (block?.type) {
    case "text":
      return `text ${block.text}`;
    case "thinking":
      return `thinking ${block.signature}`;
    case "redacted_thinking":
      return `thinking ${block.data}`;
    case "tool_use":
      return `call ${block.id}`;
    case "tool_result":
      return `result ${block.tool_use_id}`;
    default:
      return "";
  }
}

type LeftOutReason = OmitReason | "no-message";

const reasonTexts: Readonly<Record<LeftOutReason, string>> = {
  summarized: "the summary stands for them",
  reset: "before a reset",
  edited: "left out by an edit",
  excluded: "kept from models by their writer",
  invalid: "unreadable",
  "other-branch": "on another branch",
  window: "before the window",
  "no-message": "no message (a call, a checkpoint, a label, a setting)",
};

const fieldsWithoutPlace = "usage, stop reasons and record ids of the messages, and the session's entry";

/**
 * Counts the records outside the context, by reason. Records before the window count as one group, because they were
 * not read.
 */
function leftOut(
  { head, entry }: SessionState,
  records: readonly StoredRecord[],
  { messages, omitted, summaryId }: Context,
): readonly { readonly reason: LeftOutReason; readonly count: number }[] {
  const counts = new Map<LeftOutReason, number>();
  const add = (reason: LeftOutReason, count: number): void =>
    void counts.set(reason, (counts.get(reason) ?? 0) + count);
  const notes = new Set(receiptChain(entry).flatMap(noteSeqs));
  const unread = (records[0]?.seq ?? head.lastSeq + 1) - 1;
  add(summaryId === null ? "reset" : "summarized", unread);
  const included = new Set(messages.map(({ seq }) => seq));
  let range = 0;
  for (const { seq, side } of records) {
    if (seq > head.lastSeq || included.has(seq) || notes.has(seq)) continue;
    while ((omitted[range]?.toSeq ?? Infinity) < seq) range += 1;
    const found = omitted[range];
    add(found !== undefined && found.fromSeq <= seq && !side ? found.reason : "no-message", 1);
  }
  return [...counts].flatMap(([reason, count]) => (count === 0 ? [] : [{ reason, count }]));
}

function counted<Value>(values: readonly Value[]): ReadonlyMap<Value, number> {
  const counts = new Map<Value, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}
