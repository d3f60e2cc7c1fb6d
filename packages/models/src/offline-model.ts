import type { ChatModel, ChatReply, ChatRequest, Clock } from "@throughline/core";
import type { SessionModel } from "@throughline/core/internal";
import { assertKnownOptions, optionKinds, type OptionTable, systemClock } from "@throughline/core/internal";
import { collectReply } from "./collect-reply.ts";
import { limitKinds, sessionModel, type LimitOptions } from "./model-options.ts";
import { answerOffline, type OfflineAnswer } from "./offline-answer.ts";
import { readOfflineView } from "./offline-view.ts";
import { ReplyDraft } from "./reply-draft.ts";

/** Records name this id as the model that answered. */
export const offlineModelId = "offline-rules";

/** Configures `offline`. */
export interface OfflineModelOptions extends Omit<LimitOptions, "assumedWindowTokens" | "thinkingLevel"> {
  /** Sets the pause between two words of a streamed answer, in milliseconds. @default 0 */
  readonly wordDelayMs?: number | undefined;
  /** Measures the pauses between words. @default the system's */
  readonly clock?: Clock | undefined;
}

const table: OptionTable<OfflineModelOptions> = {
  windowTokens: limitKinds.windowTokens,
  maxOutputTokens: limitKinds.maxOutputTokens,
  wordDelayMs: optionKinds.integer({ min: 0, max: 60_000 }),
  clock: optionKinds.objectWith("sleep"),
};

/**
 * Creates a model that answers by rules, for programs without a key. The rules list and read files with the given
 * tools, and recall earlier messages. They are not a language model, and every text starts with that notice. The same
 * messages produce the same answer. The model counts no tokens: `usage` is null. It reads messages in Anthropic's
 * format.
 *
 * @returns the `model` option of `createSessions`. Calls throw ABORTED
 * @throws {ThroughlineError} INPUT_INVALID
 * @example
 * const sessions = createSessions({ store, model: offline() });
 */
export function offline(options: OfflineModelOptions = {}): SessionModel {
  assertKnownOptions<OfflineModelOptions>("offline", options, table);
  const { wordDelayMs = 0, windowTokens = null, clock = systemClock } = options;
  const chat: ChatModel = {
    provider: "offline",
    api: "anthropic",
    chat: (request) => answer(request, clock, wordDelayMs),
    windowTokens: async () => windowTokens,
    takesImages: async () => false,
  };
  return sessionModel(chat, offlineModelId, options);
}

interface OfflineEvent {
  readonly key: number;
  readonly word?: string;
  readonly call?: OfflineAnswer["calls"][number];
}

function answer(request: ChatRequest, clock: Clock, wordDelayMs: number): Promise<ChatReply> {
  const { modelId, messages, tools = [], onDelta, signal } = request;
  const draft = new ReplyDraft({ api: "anthropic-messages", provider: "offline", model: modelId }, onDelta ?? null);
  const open = async (): Promise<AsyncIterable<OfflineEvent> | Iterable<OfflineEvent>> => {
    const events = eventsOf(answerOffline(readOfflineView(messages), tools));
    return onDelta === undefined ? events : paced(events, (): Promise<void> => clock.sleep(wordDelayMs, signal));
  };
  const take = ({ key, word, call }: OfflineEvent): void => {
    if (word !== undefined) draft.text(key, word);
    if (call === undefined) return;
    draft.call(key, call.id, call.name);
    draft.input(key, call.input);
    draft.endCall(key);
  };
  return collectReply({
    request,
    draft,
    open: async () => finishing(await open(), draft),
    take,
    endOf: (word) => ({ stopReason: word === "tool_use" ? "toolUse" : "stop" }),
    brokenOff: () => new Error("The offline model stopped in the middle of its answer."),
  });
}

function eventsOf({ text, calls }: OfflineAnswer): readonly OfflineEvent[] {
  const words = text.match(/\S+\s*|\s+/g) ?? [];
  return [...words.map((word) => ({ key: 0, word })), ...calls.map((call, index) => ({ key: index + 1, call }))];
}

async function* paced(events: Iterable<OfflineEvent>, pause: () => Promise<void>): AsyncGenerator<OfflineEvent> {
  for (const event of events) {
    yield event;
    await pause();
  }
}

/** Sets the stop reason after the last event, because `collectReply` treats an answer without one as broken off. */
async function* finishing(
  events: AsyncIterable<OfflineEvent> | Iterable<OfflineEvent>,
  draft: ReplyDraft,
): AsyncGenerator<OfflineEvent> {
  yield* events;
  draft.stopReason = draft.hasCalls ? "tool_use" : "end_turn";
}
