import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import type { ProviderSimulator } from "@throughline/testing";

export interface ChatServer {
  readonly url: string;
  stop(signal: NodeJS.Signals): Promise<void>;
}

/** Starts the example over the sessions of a folder. */
export async function startChat(folder: string, provider: ProviderSimulator): Promise<ChatServer> {
  const env = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url, COOKIE_SECRET: "secret", PORT: "0" };
  const server = spawn(process.execPath, [join(import.meta.dirname, "../src/main.ts")], {
    env: { ...process.env, ...env, SESSIONS: join(folder, "sessions.db") },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    server.kill(signal);
    await ended;
  };
  for await (const url of createInterface({ input: server.stderr }))
    if (url.startsWith("http://")) return { url, stop };
  throw new Error("The server did not start.");
}

/** Runs a program over the sessions of a folder that is killed while it asks whether a tool may run. */
export async function killAtQuestion(folder: string, key: string, provider: ProviderSimulator): Promise<void> {
  const program = join(import.meta.dirname, "asking-program.ts");
  const given = ["--conditions=@throughline/source", program, join(folder, "sessions.db"), key];
  const child = spawn(process.execPath, given, {
    env: { ...process.env, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  await Promise.race([once(child.stdout, "data"), exited.then(() => Promise.reject(new Error("It did not ask.")))]);
  child.kill("SIGKILL");
  await exited;
}
