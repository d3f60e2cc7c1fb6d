import type { Host } from "../host.ts";
import { spawnSelf } from "./run-self.ts";

export interface KilledProcess {
  readonly acknowledged: readonly { readonly seq: number; readonly id: string }[];
  readonly signal: NodeJS.Signals | null;
}

export interface KilledProcessOptions {
  readonly args: readonly string[];
  /** Kills the process during the first answer after this number of records. */
  readonly killAfter: number;
  readonly signal: AbortSignal;
}

/** After this number of pieces an answer has started and, with the demonstration's questions, has not ended. */
const piecesBeforeKill = 3;

/** Starts the conversation in a separate process and kills it with SIGKILL during an answer. */
export function runAndKill(host: Host, { args, killAfter, signal }: KilledProcessOptions): Promise<KilledProcess> {
  const child = spawnSelf(host, [...args, "--json"], signal);
  const acknowledged: { seq: number; id: string }[] = [];
  let pieces = 0;
  let rest = "";
  child.stdin.end();
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    // A line without its line feed is incomplete, so it does not count as an acknowledgement.
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
