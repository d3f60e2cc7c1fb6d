import type { RecordDraft } from "@throughline/core";
import type { Host } from "../host.ts";
import { spawnSelf } from "./run-self.ts";

/** What a writer that was killed had promised. */
export interface KilledWriter {
  /** As acknowledged, in the order of arrival. */
  readonly acknowledged: readonly { readonly seq: number; readonly id: string }[];
  /** Everything that was handed to it, acknowledged or not. */
  readonly sent: readonly RecordDraft[];
  readonly signal: NodeJS.Signals | null;
}

export interface KilledWriterOptions {
  readonly args: readonly string[];
  readonly drafts: Iterator<RecordDraft, never, void>;
  /** It is killed once it has acknowledged so many, while it is still being fed. */
  readonly killAfter: number;
  readonly signal: AbortSignal;
}

/** Feeds `append` in a process of its own and kills it in the middle of its work with SIGKILL. */
export function killWriter(host: Host, options: KilledWriterOptions): Promise<KilledWriter> {
  const child = spawnSelf(host, [...options.args, "--json"], options.signal);
  const acknowledged: { seq: number; id: string }[] = [];
  const sent: RecordDraft[] = [];
  let isKilled = false;
  let rest = "";
  const feed = (): void => {
    let isDrained = true;
    while (isDrained && !isKilled) {
      const draft = options.drafts.next().value;
      sent.push(draft);
      isDrained = child.stdin.write(`${JSON.stringify(draft)}\n`);
    }
  };
  // The pipe breaks when the reader dies; that is the point.
  child.stdin.on("error", () => {});
  child.stdin.on("drain", feed);
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    // What came without its line feed was not said to the end and counts for nothing.
    rest = lines.pop() ?? "";
    for (const line of lines) acknowledged.push(JSON.parse(line) as { seq: number; id: string });
    if (isKilled || acknowledged.length < options.killAfter) return;
    isKilled = true;
    child.kill("SIGKILL");
  });
  child.stderr.resume();
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (_code, signal) => resolve({ acknowledged, sent, signal }));
    feed();
  });
}
