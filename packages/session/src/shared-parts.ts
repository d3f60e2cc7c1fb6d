import type { ChatModel, Clock, RandomSource, SessionRef, Summarizer } from "@throughline/core";
import type { TokenEstimator } from "@throughline/tokens";
import { statedWindow } from "./answer-in-time.ts";
import { FileCache } from "./file-contents.ts";
import type { Emit } from "./session-event.ts";
import type { SessionModel } from "./session-options.ts";
import type { TurnOwners } from "./process-owners.ts";
import { TurnQueue } from "./turn-queue.ts";

/** Holds the parts that all sessions of one `Sessions` share. */
export class SharedParts {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly estimator: TokenEstimator;
  readonly owners: TurnOwners;
  readonly timeZone: string;
  /** Writes titles; null when titles are by rules alone. */
  readonly titleSummarizer: Summarizer | null;
  readonly fileCache: FileCache = new FileCache();
  /** Holds the turns that ended here without a mark in the log, because the store failed. */
  readonly abandoned: Set<string>;
  readonly #queues = new Map<string, TurnQueue>();
  readonly #windows = new WeakMap<ChatModel, Map<string, number | null>>();
  /** Holds the models whose assumed window was reported, so that each is reported once. */
  readonly #assumed = new WeakMap<ChatModel, Set<string>>();

  constructor(
    parts: Pick<
      SharedParts,
      "clock" | "random" | "estimator" | "owners" | "timeZone" | "titleSummarizer" | "abandoned"
    >,
  ) {
    this.abandoned = parts.abandoned;
    this.clock = parts.clock;
    this.random = parts.random;
    this.estimator = parts.estimator;
    this.owners = parts.owners;
    this.timeZone = parts.timeZone;
    this.titleSummarizer = parts.titleSummarizer;
  }

  queueOf({ namespace, agentId, key }: SessionRef): TurnQueue {
    const name = JSON.stringify([namespace, agentId, key]);
    const known = this.#queues.get(name);
    if (known !== undefined) return known;
    // Idle queues are removed, because a long-lived process opens many sessions.
    for (const [other, queue] of this.#queues) if (queue.isIdle) this.#queues.delete(other);
    const queue = new TurnQueue();
    this.#queues.set(name, queue);
    return queue;
  }

  /**
   * Returns the window of the options, else that of the provider, which is asked once, else the assumed one. Null when
   * it is unknown.
   */
  async windowOf(model: SessionModel, emit: Emit | null, signal: AbortSignal): Promise<number | null> {
    if (model.windowTokens !== undefined) return model.windowTokens;
    const stated = await this.#statedWindow(model, emit, signal);
    if (stated !== null) return stated;
    const { chat, modelId, assumedWindowTokens = null } = model;
    if (assumedWindowTokens !== null && emit !== null && !this.#assumed.get(chat)?.has(modelId)) {
      this.#assumed.set(chat, (this.#assumed.get(chat) ?? new Set()).add(modelId));
      emit({ name: "window.assumed", modelId, windowTokens: assumedWindowTokens });
    }
    return assumedWindowTokens;
  }

  async #statedWindow({ chat, modelId }: SessionModel, emit: Emit | null, signal: AbortSignal): Promise<number | null> {
    if (chat.windowTokens === undefined) return null;
    const windows = this.#windows.get(chat) ?? new Map<string, number | null>();
    this.#windows.set(chat, windows);
    const known = windows.get(modelId);
    if (known !== undefined) return known;
    try {
      const stated = await statedWindow(chat, modelId, signal, this.clock);
      windows.set(modelId, stated);
      return stated;
    } catch (cause) {
      emit?.({ name: "window.unread", cause });
      return null;
    }
  }
}
