import { runSteps, type Steps } from "@throughline/core/internal";
import { TurnAssembly } from "./assemble-turns.ts";
import type { Context } from "./build-context.ts";
import { collectSteps } from "./collect-items.ts";
import { summaryPrefixes } from "./message-texts.ts";
import { CallPairing } from "./pair-calls.ts";
import type { RenderOptions } from "./render-options.ts";
import { createRepairLog, sortedRepairs, type Repair } from "./repair.ts";
import type { ProviderRules, ReplayRules } from "./replay-rules.ts";
import type { ReplayTurn } from "./replay-turn.ts";

/** A history in a provider's own shapes. */
export interface Rendering<Message> {
  /** For the request's own field; null where the system prompt is among the messages, or there is none. */
  readonly system: string | null;
  /** Ready to be sent; of an empty context the system prompt alone, where it stands among the messages. */
  readonly messages: Message[];
  /** Every change that was made to what the log says, in the order of the records. */
  readonly repairs: readonly Repair[];
  /** The id in the log of every call whose id was changed, by the id that is sent. */
  readonly callIds: ReadonlyMap<string, string>;
  /** The name in the log of every tool whose name was changed, by the name that is sent. */
  readonly toolNames: ReadonlyMap<string, string>;
}

/** How one provider takes a history: its rules, and its shapes for a turn. */
export interface ProviderMapping<Message> {
  /** What the provider accepts. */
  readonly rules: ProviderRules;
  /** The messages of one turn. Depends on the turn alone, so that what did not change is not made again. */
  readonly turn: (turn: ReplayTurn) => readonly Message[];
  /** Puts the system prompt where it belongs. */
  readonly system: (system: string) => { readonly field: string | null; readonly first: readonly Message[] };
}

/** One pass over a context: clean, pair, assemble, map. */
export function renderWith<Message>(
  context: Context,
  mapping: ProviderMapping<Message>,
  options: RenderOptions,
): Rendering<Message> {
  return runSteps(renderSteps(context, mapping, options));
}

/** What `renderWith` gives, a message a step in each part of the pass. */
export function* renderSteps<Message>(
  context: Context,
  mapping: ProviderMapping<Message>,
  options: RenderOptions,
): Steps<Rendering<Message>> {
  const rules = replayRules(context.model, mapping.rules, options);
  const log = createRepairLog();
  const { items, steps } = yield* collectSteps(context.messages, rules, log.report);
  yield* new CallPairing(rules.orphanResults, log.report, steps).takeAll(items);
  const assembly = new TurnAssembly(rules, log.report);
  yield* assembly.takeAll(items);
  assembly.finish();
  const { field, first } = systemOf(mapping, options);
  const names = assembly.changedNames();
  const repairs = log.upToNow();
  const messages: Message[] = [...first];
  for (const turn of assembly.turns().turns) {
    for (const message of mapping.turn(turn)) messages.push(message);
    yield;
  }
  return {
    system: field,
    messages,
    // Of a provider with ids of its own form there is one for every call: put together for whoever asks.
    get repairs() {
      return sortedRepairs([repairs]);
    },
    get callIds() {
      return names.callIds();
    },
    toolNames: names.toolNames,
  };
}

/** Where the system prompt goes; nowhere when there is none. */
export function systemOf<Message>(
  mapping: ProviderMapping<Message>,
  { system }: RenderOptions,
): { readonly field: string | null; readonly first: readonly Message[] } {
  return system === undefined || system === null ? { field: null, first: [] } : mapping.system(system);
}

/** A provider's rules with what the caller asks for. */
export function replayRules(model: Context["model"], rules: ProviderRules, options: RenderOptions): ReplayRules {
  const target = options.target === undefined ? model : options.target;
  const modelId = target?.modelId ?? null;
  const isMarker = options.media === "marker";
  return {
    ...rules,
    target,
    summaryPrefix: options.summaryPrefix ?? (summaryPrefixes[0] as string),
    orphanResults: options.orphanResults ?? "drop",
    trailingAssistant: options.trailingAssistant ?? rules.trailingAssistant(modelId),
    systemMessages: options.systemMessages ?? rules.systemMessages,
    callSignature: rules.callSignature(modelId),
    carriedBlocks: {
      user: carried(rules.carriedBlocks.user, options).difference(replyBlocks),
      result: carried(rules.carriedBlocks.result, options).difference(replyBlocks),
      reply: carried(rules.carriedBlocks.reply, options),
    },
    imageLinks: rules.imageLinks && !isMarker,
    fileLinks: rules.fileLinks && !isMarker,
    imageTypes: isMarker ? new Set() : rules.imageTypes,
    fileTypes: isMarker ? new Set() : rules.fileTypes,
  };
}

/** What stands in replies alone, whoever asks for it to be carried. */
const replyBlocks: ReadonlySet<string> = new Set(["compaction", "server_tool_use", "mcp_tool_use", "mcp_tool_result"]);

const fileBlocks: ReadonlySet<string> = new Set(["document", "container_upload"]);

function carried(types: ReadonlySet<string>, { media, carryBlocks }: RenderOptions): ReadonlySet<string> {
  const all = carryBlocks === undefined ? types : types.union(carryBlocks);
  return media === "marker" ? all.difference(fileBlocks) : all;
}
