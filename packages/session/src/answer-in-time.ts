import { ThroughlineError, type ChatModel, type Clock } from "@throughline/core";

/** After an abort the model has this long to return a partial answer. */
const graceMs = 2000;

function stop(controller: AbortController | null): void {
  controller?.abort();
}

/**
 * Waits for the answer of a model. A model that ignores the abort is abandoned, so that an aborted turn always ends.
 *
 * @throws {ThroughlineError} ABORTED when the answer was abandoned, and what the model throws
 */
export async function answerInTime<Reply>(work: Promise<Reply>, signal: AbortSignal, clock: Clock): Promise<Reply> {
  const { promise: left, reject } = Promise.withResolvers<never>();
  let isOver: AbortController | null = null;
  const leave = (): void => {
    const error = new ThroughlineError("ABORTED", "The model went on although it was aborted; it was left.");
    isOver = new AbortController();
    clock.sleep(graceMs, isOver.signal).then(
      () => reject(error),
      () => null,
    );
  };
  if (signal.aborted) leave();
  else signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([work, left]);
  } finally {
    signal.removeEventListener("abort", leave);
    stop(isOver);
  }
}

/**
 * Asks the provider for the window of a model. Null when the provider states none, or its adapter cannot ask.
 * @throws as `answerInTime` does
 */
export async function statedWindow(
  chat: ChatModel,
  modelId: string,
  signal: AbortSignal,
  clock: Clock,
): Promise<number | null> {
  const { windowTokens } = chat;
  return windowTokens === undefined ? null : answerInTime(windowTokens.call(chat, modelId, signal), signal, clock);
}
