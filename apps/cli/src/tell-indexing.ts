import type { SearchFacet } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import type { CommandContext } from "./command.ts";
import { counted } from "./counted.ts";

const everyMs = 250;

/**
 * Yields the items unchanged. Until the first one arrives, a terminal shows how many records the search index still
 * lacks.
 */
export async function* tellIndexing<Item>(
  { host, output }: Pick<CommandContext, "host" | "output">,
  search: SearchFacet,
  items: AsyncIterable<Item>,
): AsyncGenerator<Item, void, void> {
  const over = new AbortController();
  const isShown = host.stderr.isTTY === true && !output.isJson;
  // A failure here also fails the search, which reports it.
  const telling = isShown ? tellLag(search, output, over.signal).catch(() => undefined) : Promise.resolve();
  const stop = async (): Promise<void> => {
    if (over.signal.aborted) return;
    over.abort();
    await telling;
    output.clearProgress();
  };
  try {
    for await (const item of items) {
      await stop();
      yield item;
    }
  } finally {
    await stop();
  }
}

async function tellLag(
  search: SearchFacet,
  output: Pick<CommandContext["output"], "progress">,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const lag = await search.lag();
    if (signal.aborted || lag === 0) return;
    output.progress(`the search index takes in ${counted(lag, "record")}`);
    await systemClock.sleep(everyMs, signal);
  }
}
