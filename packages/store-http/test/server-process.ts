import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { ServeRequest } from "./serve-store.ts";

/** Another process that serves stores over HTTP. */
export interface ServerProcess {
  ask<Result>(request: ServeRequest): Promise<Result>;
  /** Ends it with SIGKILL, and waits until it is gone. */
  kill(): Promise<void>;
}

export function startServerProcess(): ServerProcess {
  const child: ChildProcess = fork(join(import.meta.dirname, "serve-store.ts"), {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  let asked = 0;
  child.on("message", ({ number, result, error }: { number: number; result?: unknown; error?: string }) => {
    const waiter = waiting.get(number);
    waiting.delete(number);
    if (error === undefined) waiter?.resolve(result);
    else waiter?.reject(new Error(error));
  });
  child.on("exit", () => {
    for (const waiter of waiting.values()) waiter.reject(new Error("the process of the servers has ended"));
  });
  return {
    ask: <Result>(request: ServeRequest) =>
      new Promise<Result>((resolve, reject) => {
        asked += 1;
        waiting.set(asked, { resolve: (result) => resolve(result as Result), reject });
        child.send({ ...request, number: asked });
      }),
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}
