import { sessionRef } from "@throughline/core";
import type { ChatRequest, StoredRecord } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { talk } from "../demo/demo-talk.ts";

interface TalkOptions {
  readonly until?: number;
}

/**
 * The demonstration runs this in a separate process. One such process is killed. Another continues to a given number of
 * messages and reports what the model received.
 */
export async function run({ output, openStore, signal }: CommandContext, input: CommandInput): Promise<number> {
  const [key = "", workspace = ""] = input.arguments;
  const { until } = input.options as TalkOptions;
  let writes: Promise<void> = Promise.resolve();
  const print = (value: { readonly kind: string; readonly [field: string]: unknown }): void => {
    writes = writes.then(() => output.object(value)).then(() => output.flush());
  };
  const watched = {
    wordDelayMs: 5,
    onRecord: ({ seq, id }: StoredRecord) => print({ kind: "ack", seq, id }),
    onDelta: () => print({ kind: "delta" }),
  };
  const told = { onRequest: ({ messages }: ChatRequest) => print({ kind: "request", messages }) };
  const result = await talk({
    store: await openStore("write"),
    ref: sessionRef({ key }),
    workspace,
    until: until === undefined ? { turns: 1000 } : { messages: until },
    signal,
    ...(until === undefined ? watched : told),
  });
  print({ kind: "talk", ...result });
  await writes;
  return 0;
}
