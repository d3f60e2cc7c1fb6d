/** Runs work beside a command, until the command is canceled or the work is disposed of, which waits for its end. */
export function runBeside(canceled: AbortSignal, work: (signal: AbortSignal) => Promise<void>): AsyncDisposable {
  const ending = new AbortController();
  const running = work(AbortSignal.any([canceled, ending.signal]));
  return {
    async [Symbol.asyncDispose]() {
      ending.abort();
      await running;
    },
  };
}
