import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { EmbeddingFault, ReceivedTexts } from "./embedding-process.ts";

export type { EmbeddingFault, ReceivedTexts };

/** States how a server answers from now on. */
interface EmbeddingControl {
  readonly fault?: EmbeddingFault;
  readonly slowMs?: number;
  /** Longer texts are refused. */
  readonly mostCharacters?: number;
}

/** Runs an embedding server in a process of its own. */
export interface EmbeddingServer extends AsyncDisposable {
  /** States the address without a path. */
  readonly url: string;
  control(how: EmbeddingControl): Promise<void>;
  /** Returns the requests since the last call. */
  received(): Promise<readonly ReceivedTexts[]>;
  /** Ends the process at once. */
  kill(): Promise<void>;
}

/** Starts a server that speaks the protocols of OpenAI and Ollama, and gives texts vectors of 64 numbers by their words. */
export async function startEmbeddingServer(): Promise<EmbeddingServer> {
  const path = fileURLToPath(new URL("embedding-process.ts", import.meta.url));
  const child = fork(path, [], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const [{ port }] = (await once(child, "message")) as [{ readonly port: number }];
  const url = `http://127.0.0.1:${port}`;
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  return {
    url,
    control: async (how) =>
      void (await (await fetch(`${url}/control`, { method: "POST", body: JSON.stringify(how) })).text()),
    received: async () => (await (await fetch(`${url}/received`)).json()) as readonly ReceivedTexts[],
    kill,
    [Symbol.asyncDispose]: kill,
  };
}
