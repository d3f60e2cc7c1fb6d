import type { ChatModel, ChatReply, ChatRequest, Clock } from "@throughline/core";
import { systemClock } from "@throughline/core/node";
import { collectReply } from "./collect-reply.ts";
import { answerOffline, type OfflineAnswer } from "./offline-answer.ts";
import { readOfflineView } from "./offline-view.ts";
import { ReplyDraft } from "./reply-draft.ts";

/** The one model there is. */
export const offlineModelId = "offline-rules";

export interface OfflineModelOptions {
  /** Between two words of a streamed answer. @default 0 */
  readonly wordDelayMs?: number;
  /** The window it states, for trying out what happens at its end. @default null: it has none */
  readonly windowTokens?: number | null;
  /** @default the system's */
  readonly clock?: Clock;
}

/**
 * Answers by a few rules, for whoever has no key: it lists and reads files with the tools it is given, and recalls what
 * was said. It is no language model, and every text of its begins by saying so. The same messages give the same answer.
 * Tokens are not counted: `usage` is null. Messages come in Anthropic's shape.
 * @throws {ThroughlineError} ABORTED
 */
export function createOfflineModel(options: OfflineModelOptions = {}): ChatModel {
  const { wordDelayMs = 0, windowTokens = null, clock = systemClock } = options;
  return {
    provider: "offline",
    api: "anthropic",
    chat: (request) => answer(request, clock, wordDelayMs),
    windowTokens: async () => windowTokens,
  };
}

interface OfflineEvent {
  readonly key: number;
  readonly word?: string;
  readonly call?: OfflineAnswer["calls"][number];
}

function answer(request: ChatRequest, clock: Clock, wordDelayMs: number): Promise<ChatReply> {
  const { model, messages, tools = [], onDelta, signal } = request;
  const draft = new ReplyDraft({ api: "anthropic-messages", provider: "offline", model }, onDelta ?? null);
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

/** The answer is complete with its last event. */
async function* finishing(
  events: AsyncIterable<OfflineEvent> | Iterable<OfflineEvent>,
  draft: ReplyDraft,
): AsyncGenerator<OfflineEvent> {
  yield* events;
  draft.stopReason = draft.hasCalls ? "tool_use" : "end_turn";
}
