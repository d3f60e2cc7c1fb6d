import { spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { bundledWorker } from "../../../tools/bundle-worker.ts";

const script = bundledWorker(new URL("./question-process.ts", import.meta.url));

/**
 * Runs a process that is killed while its turn asks whether the next call may run.
 *
 * @param kind the store, as `openStore` names it
 * @param allowed how many calls run before that
 */
export async function killAtQuestion(kind: string, folder: string, allowed: number): Promise<void> {
  const child = spawn(process.execPath, [script, kind, folder, String(allowed)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  await Promise.race([once(child.stdout, "data"), exited.then(() => Promise.reject(new Error("It did not ask.")))]);
  child.kill("SIGKILL");
  await exited;
}
