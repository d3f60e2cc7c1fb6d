import { once } from "node:events";
import { ThroughlineError } from "@throughline/core";
import type { FollowedEvent } from "@throughline/session/internal";
import type { Reply } from "../http/exchange.ts";
import type { StreamEnd } from "./event-stream.ts";
import { eventText } from "./event-text.ts";

/** Writes the text of one turn to one response while the turn runs, no faster than the client reads. */
export class TextStream {
  readonly #response: Reply;
  readonly #turnId: string;
  readonly #leaving = new AbortController();
  #end: StreamEnd = "client";

  constructor(response: Reply, turnId: string) {
    this.#response = response;
    this.#turnId = turnId;
    for (const event of ["close", "error"] as const) response.on(event, () => this.#leaving.abort());
  }

  /** Aborts when the client has left or the stream is ended from here. */
  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  ping(): void {
    if (!this.#response.writableNeedDrain) this.#write(eventText("ping", "{}"));
  }

  bye(retryMs: number): void {
    this.#finish("bye", eventText("bye", JSON.stringify({ retryMs })));
  }

  /** Ends the stream because the token of the client is no longer valid. */
  revoke(): void {
    const gone = { code: "UNAUTHENTICATED", sessionId: null };
    this.#finish("gone", eventText("gone", JSON.stringify(gone)));
  }

  /** Resolves once the stream has ended, to the reason. */
  async run(events: AsyncIterable<FollowedEvent>): Promise<StreamEnd> {
    try {
      for await (const event of events) {
        if (event.kind === "record") continue;
        if (event.kind === "end") {
          this.#finish("gone", this.#endText(event));
          break;
        }
        const name = event.kind === "snapshot" ? "text.snapshot" : "text.delta";
        this.#write(eventText(name, JSON.stringify({ turnId: this.#turnId, text: event.text })));
        if (this.#response.writableNeedDrain) await once(this.#response, "drain", { signal: this.signal });
      }
    } catch (error) {
      if (!this.signal.aborted) {
        const code = ThroughlineError.isInstance(error) ? error.code : "INTERNAL";
        this.#finish("failed", eventText("gone", JSON.stringify({ code, sessionId: null })));
      }
    }
    return this.#end;
  }

  #endText({ mark }: Extract<FollowedEvent, { readonly kind: "end" }>): string {
    const turnId = this.#turnId;
    if (mark === null || mark.state === "interrupted") return eventText("turn.interrupted", JSON.stringify({ turnId }));
    return eventText("turn.closed", JSON.stringify({ turnId, outcome: mark.state }));
  }

  #write(text: string): void {
    if (!this.signal.aborted && !this.#response.destroyed) this.#response.write(text);
  }

  #finish(end: StreamEnd, last: string): void {
    if (this.signal.aborted) return;
    this.#end = end;
    this.#response.end(last);
    this.#leaving.abort();
  }
}
