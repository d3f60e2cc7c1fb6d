import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";

type Headers = Readonly<Record<string, string>>;

/** An example that serves the session API, in a process of its own. */
export interface ServedExample {
  readonly url: string;
  /** Makes a session with one record. */
  keepNote(headers: Headers): Promise<void>;
  /** The status of the list of records, and how many there are. */
  notesOf(headers: Headers): Promise<readonly [number, number | null]>;
  /** Resolves once the first event has come, with a promise of the whole stream. */
  follow(headers: Headers): Promise<{ readonly text: Promise<string> }>;
  /** Stops it as a service manager does. */
  stop(): Promise<void>;
  end(): Promise<void>;
}

export async function serveExample(path: string, variables: Headers): Promise<ServedExample> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
  const child = spawn(process.execPath, [path], {
    env: { ...process.env, ...variables, PORT: "0", SESSIONS: join(folder, "sessions.db") },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = once(child, "exit");
  let url = "";
  for await (const line of createInterface({ input: child.stderr })) {
    url = line;
    if (line.startsWith("http://")) break;
  }
  const at = `${url}/api/v1/sessions/notes`;
  const send = async (method: string, address: string, body: string, headers: Headers): Promise<void> => {
    const asked = { method, body, headers: { ...headers, "content-type": "application/json" } };
    const response = await fetch(address, asked);
    if (response.status !== 201) throw new Error(`${response.status}: ${await response.text()}`);
  };
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await ended;
  };
  return {
    url,
    async keepNote(headers) {
      await send("PUT", at, "{}", headers);
      await send("POST", `${at}/records`, JSON.stringify({ drafts: [{ type: "note" }] }), headers);
    },
    async notesOf(headers) {
      const response = await fetch(`${at}/records`, { headers });
      const { count = null } = (await response.json()) as { readonly count?: number };
      return [response.status, count];
    },
    async follow(headers) {
      const response = await fetch(`${at}/events`, { headers });
      const pieces = response.body?.pipeThrough(new TextDecoderStream());
      const reader = pieces?.getReader();
      let seen = (await reader?.read())?.value ?? "";
      const restOf = async (): Promise<string> => {
        for (let piece = await reader?.read(); piece?.done === false; piece = await reader?.read()) seen += piece.value;
        return seen;
      };
      return { text: restOf() };
    },
    stop,
    async end() {
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
