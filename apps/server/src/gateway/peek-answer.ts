import type { IncomingMessage } from "node:http";

/** An answer whose first chunks were read before it was decided what becomes of it. */
export interface PeekedAnswer {
  readonly answer: IncomingMessage;
  /** What was read of its body. */
  readonly chunks: readonly Buffer[];
  /** `open`: more may come. `ended`, `broken`: all that came was read. */
  readonly state: "open" | "ended" | "broken";
}

/** An answer of which nothing was read. */
export function unread(answer: IncomingMessage): PeekedAnswer {
  return { answer, chunks: [], state: "open" };
}

/** Reads the body of an answer until a test says that enough is known, or it ends. It stands still then. */
export function peekAnswer(answer: IncomingMessage, isEnough: (chunk: Buffer) => boolean): Promise<PeekedAnswer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const stop = (state: PeekedAnswer["state"]): void => {
      answer.pause();
      answer.off("data", onData).off("end", onEnd).off("error", onError);
      // It may break while nobody reads it; whoever reads on is told.
      answer.on("error", () => {});
      resolve({ answer, chunks, state });
    };
    // It broke before anybody read it: nothing of it comes any more, no event either.
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
