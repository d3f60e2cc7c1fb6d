import { causeText } from "@throughline/core/internal";
import type { SessionState, SessionStore } from "@throughline/core";
import type { UsageReader } from "@throughline/usage/internal";
import type { CommandContext } from "../command.ts";
import { usdText } from "../counted.ts";

/** Counts what the calls of one session cost, as `usage` does, beside the conversation. */
export class SessionCost {
  readonly #context: CommandContext;
  readonly #store: SessionStore;
  #reader: UsageReader | null = null;
  #work: Promise<void> = Promise.resolve();
  #isBroken = false;
  #requests = 0;
  #last: { readonly sessionId: string; readonly text: string | null } | null = null;

  constructor(context: CommandContext, store: SessionStore) {
    this.#context = context;
    this.#store = store;
  }

  /** Returns what was counted last for a session. */
  last(sessionId: string): string | null {
    return this.#last?.sessionId === sessionId ? this.#last.text : null;
  }

  /** Reports the cost when it is counted; null where no price is known. Only the newest request is reported. */
  count(state: SessionState, onCost: (text: string | null) => void): void {
    const request = ++this.#requests;
    this.#work = this.#work.then(async () => {
      if (this.#isBroken || request !== this.#requests) return;
      try {
        const text = await this.#read(state);
        this.#last = { sessionId: state.sessionId, text };
        if (request === this.#requests) onCost(text);
      } catch (error) {
        this.#isBroken = true;
        if (!this.#context.signal.aborted) this.#context.output.note(`The cost is not shown: ${causeText(error)}`);
      }
    });
  }

  async close(): Promise<void> {
    await this.#work;
    this.#reader?.close();
  }

  async #read({ sessionId, ref, entry }: SessionState): Promise<string | null> {
    const { signal, scope } = this.#context;
    // The prompt does not wait for this module.
    const { openStoreUsage } = await import("./usage-file.ts");
    this.#reader ??= openStoreUsage(this.#context, this.#store);
    const { total } = await this.#reader.report({
      namespace: scope.namespace,
      agentId: ref.agentId,
      isWanted: (row) => row.sessionId === sessionId,
      // Sessions without later activity are not read.
      ...(entry.updatedAt === undefined ? {} : { activeSinceMs: entry.updatedAt }),
      signal,
    });
    return total.costUsd === null || total.costUsd === 0 ? null : `~${usdText(total.costUsd)}`;
  }
}
