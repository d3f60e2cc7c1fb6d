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
import type { MessageOrigins } from "./message-origins.ts";

/** Holds a history in a provider's own format. */
export interface Rendering<Message> {
  /** Holds the system prompt for the request's own field; null if it stands among the messages, or if there is none. */
  readonly system: string | null;
  /**
   * Holds the messages to send. An empty context gives only the system prompt, if the provider expects it among the
   * messages.
   */
  readonly messages: Message[];
  /** Lists every change to the content of the log, in the order of the records. */
  readonly repairs: readonly Repair[];
  /** Maps the changed ids of calls to the ids in the log. The keys are the ids that are sent. */
  readonly callIds: ReadonlyMap<string, string>;
  /** Maps the changed names of tools to the names in the log. The keys are the names that are sent. */
  readonly toolNames: ReadonlyMap<string, string>;
}

/** Describes how one provider receives a history. */
export interface ProviderMapping<Message> {
  /** Holds the rules of the provider. */
  readonly rules: ProviderRules;
  /**
   * Maps one turn to messages. The result must depend only on the turn, so that unchanged turns are not mapped again.
   */
  readonly turn: (turn: ReplayTurn) => readonly Message[];
  /** Places the system prompt in the request field or among the messages. */
  readonly system: (system: string) => { readonly field: string | null; readonly first: readonly Message[] };
}

export function renderWith<Message>(
  context: Context,
  mapping: ProviderMapping<Message>,
  options: RenderOptions,
): Rendering<Message> {
  return runSteps(renderSteps(context, mapping, options));
}

/**
 * Renders like `renderWith`, one message per step, so that a long history does not block the process.
 * @param origins collects where each message comes from. @default nothing is collected
 */
export function* renderSteps<Message>(
  context: Context,
  mapping: ProviderMapping<Message>,
  options: RenderOptions,
  origins: MessageOrigins | null = null,
): Steps<Rendering<Message>> {
  const rules = replayRules(context.model, mapping.rules, options);
  const log = createRepairLog();
  const { items, steps } = yield* collectSteps(context.messages, rules, log.report);
  yield* new CallPairing(rules.orphanResults, log.report, steps).takeAll(items);
  const assembly = new TurnAssembly(rules, log.report, null, origins);
  yield* assembly.takeAll(items);
  assembly.finish();
  const { field, first } = systemOf(mapping, options);
  const names = assembly.changedNames();
  const repairs = log.upToNow();
  const messages: Message[] = [...first];
  for (const turn of assembly.turns().turns) {
    const mapped = mapping.turn(turn);
    for (const message of mapped) messages.push(message);
    origins?.rendered(turn, mapped.length);
    yield;
  }
  return {
    system: field,
    messages,
    // The getters compute on demand, because providers with their own id format have one entry for every call.
    get repairs() {
      return sortedRepairs([repairs]);
    },
    get callIds() {
      return names.callIds();
    },
    toolNames: names.toolNames,
  };
}

export function systemOf<Message>(
  mapping: ProviderMapping<Message>,
  { system }: RenderOptions,
): { readonly field: string | null; readonly first: readonly Message[] } {
  return system === undefined || system === null ? { field: null, first: [] } : mapping.system(system);
}

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
    files: options.files ?? null,
    room: { taken: 0 },
  };
}

/** These types are valid only in replies, even if the caller asks to carry them. */
const replyBlocks: ReadonlySet<string> = new Set(["compaction", "server_tool_use", "mcp_tool_use", "mcp_tool_result"]);

const fileBlocks: ReadonlySet<string> = new Set(["document", "container_upload"]);

function carried(types: ReadonlySet<string>, { media, carryBlocks }: RenderOptions): ReadonlySet<string> {
  const all = carryBlocks === undefined ? types : types.union(carryBlocks);
  return media === "marker" ? all.difference(fileBlocks) : all;
}
