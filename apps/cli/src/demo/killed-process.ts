import type { Host } from "../host.ts";
import { spawnSelf } from "./run-self.ts";

/** What a process that was killed in the middle of an answer had said of its records. */
export interface KilledProcess {
  /** In the order they were acknowledged. */
  readonly acknowledged: readonly { readonly seq: number; readonly id: string }[];
  readonly signal: NodeJS.Signals | null;
}

export interface KilledProcessOptions {
  readonly args: readonly string[];
  /** The process is killed during the first answer after this number of records. */
  readonly killAfter: number;
  readonly signal: AbortSignal;
}

/** Pieces of an answer that must have come: then it has begun and, with what the demonstration asks, not ended. */
const piecesBeforeKill = 3;

/** Has the conversation begin in a process of its own and kills that with SIGKILL while an answer is coming. */
export function runAndKill(host: Host, { args, killAfter, signal }: KilledProcessOptions): Promise<KilledProcess> {
  const child = spawnSelf(host, [...args, "--json"], signal);
  const acknowledged: { seq: number; id: string }[] = [];
  let pieces = 0;
  let rest = "";
  child.stdin.end();
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    // What came without its line feed was not said to the end and counts for nothing.
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const { kind, seq = 0, id = "" } = JSON.parse(line) as { kind: string; seq?: number; id?: string };
      if (kind === "ack") acknowledged.push({ seq, id });
      pieces = kind === "delta" && acknowledged.length >= killAfter ? pieces + 1 : 0;
      if (pieces >= piecesBeforeKill) child.kill("SIGKILL");
    }
  });
  const talk: Buffer[] = [];
  child.stderr.on("data", (chunk: Buffer) => talk.push(chunk));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, endedBy) => {
      if (endedBy !== null) resolve({ acknowledged, signal: endedBy });
      else
        reject(
          new Error(`the conversation ended by itself with ${code}: ${Buffer.concat(talk).toString("utf8").trim()}`),
        );
    });
  });
}
