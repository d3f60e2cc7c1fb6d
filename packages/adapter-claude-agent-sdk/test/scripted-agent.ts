import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { AgentQuery } from "../src/agent-query.ts";

/**
 * Stands in for the SDK: asks a process of its own, as the SDK does, and passes on the JSON lines it says. The process
 * keeps its sessions in a folder, so that one it has kept can be resumed and one that is gone cannot.
 */
export function scriptedAgent(folder: string, seen: { prompt: string; resume: unknown }[]): AgentQuery {
  return async function* ({ prompt, options }) {
    seen.push({ prompt, resume: options["resume"] ?? null });
    const script = fileURLToPath(new URL("scripted-agent-process.ts", import.meta.url));
    const controller = options["abortController"] as AbortController;
    const resume = typeof options["resume"] === "string" ? options["resume"] : "";
    const child = spawn(process.execPath, [script, folder, resume], {
      stdio: ["pipe", "pipe", "inherit"],
      signal: controller.signal,
    });
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    // Whoever stops listening leaves its rejection to nobody.
    ended.catch(() => {});
    child.stdin.end(prompt);
    for await (const line of createInterface({ input: child.stdout })) yield JSON.parse(line);
    const code = await ended;
    if (code !== 0) throw new Error(`Claude Code process exited with code ${code}`);
  };
}
