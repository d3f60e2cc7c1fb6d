import type { IncomingMessage } from "node:http";

/** The gateway reads the first chunks ahead, before it decides what to do with the answer. */
export interface PeekedAnswer {
  readonly answer: IncomingMessage;
  readonly chunks: readonly Buffer[];
  /** `open` means that more chunks may follow. With `ended` and `broken`, `chunks` is all that arrived. */
  readonly state: "open" | "ended" | "broken";
}

export function unread(answer: IncomingMessage): PeekedAnswer {
  return { answer, chunks: [], state: "open" };
}

/**
 * Reads the body until `isEnough` returns true or the body ends. The stream is paused afterwards, so no chunk is lost.
 */
export function peekAnswer(answer: IncomingMessage, isEnough: (chunk: Buffer) => boolean): Promise<PeekedAnswer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const stop = (state: PeekedAnswer["state"]): void => {
      answer.pause();
      answer.off("data", onData).off("end", onEnd).off("error", onError);
      // The stream may fail while it is paused. Without a listener that error would end the process. The later reader
      // checks `destroyed`.
      answer.on("error", () => {});
      resolve({ answer, chunks, state });
    };
    // The stream failed before it was read, so it emits no further event.
    if (answer.destroyed) return void resolve({ answer, chunks, state: "broken" });
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      if (isEnough(chunk)) stop("open");
    };
    const onEnd = (): void => stop("ended");
    const onError = (): void => stop("broken");
    answer.on("data", onData).on("end", onEnd).on("error", onError);
  });
}
