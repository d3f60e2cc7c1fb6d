import type { StoredRecord, ToolDefinition } from "@throughline/core";
import { applyChanges, type GuardChange } from "@throughline/guard/internal";
import { type OutputFormat, runSteps, type Steps, type ToolChoice } from "@throughline/core/internal";
import type { Context } from "@throughline/history";
import type { WindowCut } from "@throughline/history/internal";
import { contextSteps, limitSteps, MessageOrigins, renderSteps } from "@throughline/history/internal";
import { isSameCall, isSameCut, readCallPart, type CallFacts, type CallSplice } from "./call-record.ts";
import { leaveThinkingOut, type ThinkingRange } from "./leave-thinking-out.ts";
import { applySplice } from "./call-splice.ts";
import { type MessagePlace, placesOf } from "./message-places.ts";
import { shortHash, toolsHashOf, withSystem } from "./prompt.ts";
import { mappingFor } from "./session-log.ts";
import { outputTool } from "./output-schema.ts";
import { changesWindow } from "./window-facts.ts";

/** Holds the parts of a request that no record stores. Records hold only their hashes. */
interface CallPrefix {
  /** Holds the system prompt of the call; null for none. */
  readonly system: string | null;
  /** Holds the tools of the call, in their order. */
  readonly tools: readonly ToolDefinition[];
  /**
   * Returns the bytes of a file to which a message refers, as `createHistory` asks for them.
   * @default a line takes the place of each file
   */
  readonly files?: ((fileId: string) => Uint8Array | null | undefined) | undefined;
}

/** Holds a request as it was sent. */
export interface RebuiltCall {
  /** Holds the system prompt for a field of its own. Null when it is one of the messages, or when there was none. */
  readonly system: string | null;
  /** Holds the messages of the request, in the provider's shape. */
  readonly messages: readonly unknown[];
  /** Holds the tools that the caller passed in the prefix, and the tool that took a structured answer. */
  readonly tools: readonly ToolDefinition[];
  /** States which tools the model was to call. */
  readonly toolChoice: ToolChoice;
  /** Holds the format of the answer that the provider's JSON mode was asked for; null for an answer in text. */
  readonly output: OutputFormat | null;
  /** Limits the tokens that the model was allowed to write; null when the request named no limit. */
  readonly maxOutputTokens: number | null;
  /**
   * States whether the system prompt has the hash that the call's record states. When it differs, `system` and the
   * message with the prompt differ too.
   */
  readonly isSameSystem: boolean;
  /** States whether the tools have the hash that the call's record states. */
  readonly areSameTools: boolean;
}

/** Holds a request as it was sent, and where its messages come from. */
interface TracedCall extends RebuiltCall {
  readonly places: readonly (readonly MessagePlace[])[];
  /** Holds the messages before the rules of the provider applied. */
  readonly context: Context;
}

/**
 * Rebuilds the request of a call from the records alone. The messages are, byte for byte as JSON, those that were sent.
 * A record that was redacted since differs, and so does one whose file `prefix.files` does not return.
 *
 * @param records in order of seq, from the call's `fromSeq` on at the latest and up to the call's own record
 * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION, CAPABILITY_UNSUPPORTED
 */
export function rebuildCall(records: readonly StoredRecord[], call: CallFacts, prefix: CallPrefix): RebuiltCall {
  const { places: _, context: __, ...rebuilt } = runSteps(rebuildSteps(records, call, prefix));
  return rebuilt;
}

/** Does the work of `rebuildCall` in small steps, so that other work can run between them. */
export function* rebuildSteps(
  records: readonly StoredRecord[],
  call: CallFacts,
  prefix: CallPrefix,
): Steps<TracedCall> {
  const { fromSeq, toSeq, headId, provider, model: modelId, api } = call;
  const seen = records.filter(({ seq }) => seq >= fromSeq && seq <= toSeq);
  const context = yield* contextSteps(seen, { headId });
  const sent = call.cut === null ? context : yield* limitSteps(context, { recorded: call.cut });
  const origins = new MessageOrigins();
  const options = { target: { provider, modelId }, ...(prefix.files === undefined ? {} : { files: prefix.files }) };
  const { messages, repairs } = yield* renderSteps(sent, mappingFor(api), options, origins);
  const whole = withSystem(api, messages, prefix.system);
  const { changes, thinkingOut, own, splice } = changesUpTo(records, call);
  const shortened = applyChanges(leaveThinkingOut(whole.messages, thinkingOut), changes);
  const kept = splice === null ? leaveThinkingOut(shortened, own) : shortened;
  const { output } = call;
  const tools = output?.as === "tool" ? [...prefix.tools, outputTool(output)] : prefix.tools;
  return {
    system: whole.system,
    messages: splice === null ? kept : applySplice(kept, splice),
    tools,
    toolChoice: call.toolChoice ?? "auto",
    output: output?.as === "json" ? { name: output.name, schema: output.schema } : null,
    maxOutputTokens: call.maxOutputTokens,
    isSameSystem: (prefix.system === null ? null : shortHash(prefix.system)) === call.systemHash,
    areSameTools: toolsHashOf(tools) === call.toolsHash,
    places: placesOf({
      origins: origins.messages,
      repairs,
      summaryId: sent.summaryId,
      rendered: whole.messages,
      shortened: kept,
      changes,
      splice,
    }),
    context: sent,
  };
}

interface CallChanges {
  readonly changes: readonly GuardChange[];
  /** Earlier calls removed this thinking. */
  readonly thinkingOut: readonly ThinkingRange[];
  /** The call itself removed this thinking. */
  readonly own: readonly ThinkingRange[];
  readonly splice: CallSplice | null;
}

function changesUpTo(records: readonly StoredRecord[], call: CallFacts): CallChanges {
  const changes: GuardChange[] = [];
  let thinkingOut: ThinkingRange[] = [];
  const own: ThinkingRange[] = [];
  let splice: CallSplice | null = null;
  let isReached = false;
  let cut: WindowCut | null = null;
  for (const stored of records) {
    if (stored.seq < call.fromSeq) continue;
    if (stored.seq <= call.toSeq && changesWindow(stored)) thinkingOut = [];
    const part = readCallPart(stored.record);
    if (part === null) continue;
    const facts = part.part === 1 ? part.call : part;
    const isOwn = isSameCall(facts, call);
    if (isReached && !isOwn) break;
    isReached ||= isOwn;
    // The ranges count messages from the first one, and another cut moves the first one.
    if (part.part === 1 && !isSameCut(cut, part.call.cut)) thinkingOut = [];
    if (part.part === 1) cut = part.call.cut;
    changes.push(...facts.changes);
    if (facts.thinkingOut !== null) (isOwn ? own : thinkingOut).push(facts.thinkingOut);
    if (isOwn) splice = facts.splice ?? splice;
  }
  return { changes, thinkingOut, own, splice };
}
