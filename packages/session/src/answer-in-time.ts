import { ThroughlineError, type ChatModel, type Clock } from "@throughline/core";

/** So long a model has to hand over what it had when it is aborted. */
const graceMs = 2000;

function stop(controller: AbortController | null): void {
  controller?.abort();
}

/**
 * The answer of a model, which is waited for. One that goes on although it was aborted is left: a turn that was ended
 * ends, whatever its model does.
 * @throws {ThroughlineError} ABORTED when it was left, and what the model throws
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

/** The window that a provider states; null when it states none. @throws as `answerInTime` does */
export async function statedWindow(
  chat: ChatModel,
  modelId: string,
  signal: AbortSignal,
  clock: Clock,
): Promise<number | null> {
  const { windowTokens } = chat;
  return windowTokens === undefined ? null : answerInTime(windowTokens.call(chat, modelId, signal), signal, clock);
}
