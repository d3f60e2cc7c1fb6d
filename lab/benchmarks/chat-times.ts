// What a person waits for in `throughline chat` on a terminal: the sign of life and the first token of a turn, the countdown of a 429,
// names and texts in the picker over 10,000 sessions, a session of 200,000 records, and the news of another program's change. Each time
// runs from the key, or from what the provider or the other program wrote, to the bytes on the terminal.
// node --conditions=@throughline/source lab/benchmarks/chat-times.ts [sessions] [records] [--check]
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { type SessionStore, sessionRef } from "../../packages/core/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { installBundle } from "../../tools/install-bundle.ts";
import { fillSession, longKey } from "./long-session.ts";

const [sessionCount = 10_000, recordCount = 200_000] = process.argv.slice(2).map(Number).filter(Boolean);
const marks = { signOfLife: 200, firstToken: 20, names: 16, texts: 150, resume: 300, elsewhere: 2000 };
const rounds = 20;
const perSession = 20;
const cli = createRequire(new URL("../../apps/cli/package.json", import.meta.url));
interface Child {
  onData(take: (data: string) => void): void;
  onExit(take: () => void): void;
  write(keys: string): void;
  kill(signal: string): void;
}
const { spawn } = cli("@lydell/node-pty") as {
  spawn(file: string, args: readonly string[], options: object): Child;
};

/** A chat on a terminal, and the time when its output held something. */
class Chat {
  readonly #child: Child;
  #raw = "";
  #look: () => void = () => {};

  constructor(bin: string, args: readonly string[], home: string, environment: Readonly<Record<string, string>> = {}) {
    mkdirSync(join(home, "project"), { recursive: true });
    this.#child = spawn(process.execPath, [bin, "chat", ...args], {
      name: "xterm-256color",
      cols: 100,
      rows: 40,
      cwd: join(home, "project"),
      env: { PATH: process.env["PATH"], HOME: home, THROUGHLINE_HOME: join(home, "home"), ...environment },
    });
    this.#child.onData((data) => {
      this.#raw += data;
      this.#look();
    });
  }

  get raw(): string {
    return this.#raw;
  }

  write(keys: string): void {
    this.#child.write(keys);
  }

  /** Resolves with the time at which what was written after `from` matches. */
  async shown(wanted: RegExp, from = 0): Promise<number> {
    const found = new Promise<number>((resolve) => {
      this.#look = () => {
        if (wanted.test(this.#raw.slice(from))) resolve(performance.now());
      };
      this.#look();
    });
    const late = sleep(60_000, null, { ref: false }).then(() => {
      throw new Error(`${String(wanted)} did not come: ${JSON.stringify(this.#raw.slice(-1500))}`);
    });
    return await Promise.race([found, late]);
  }

  /** Returns the milliseconds from these keys to what they bring. */
  async timed(keys: string, wanted: RegExp): Promise<number> {
    const [from, beganMs] = [this.#raw.length, performance.now()];
    this.write(keys);
    return (await this.shown(wanted, from)) - beganMs;
  }

  async end(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#child.onExit(resolve));
    this.#child.kill("SIGKILL");
    await ended;
  }
}

const atPrompt = /\]133;D/;

function share(times: readonly number[], part: number): number {
  const sorted = times.toSorted((one, other) => one - other);
  return Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0) * 10) / 10;
}

let isGood = true;

function tell(what: string, times: readonly number[], mark: number, part = 0.5): void {
  const judged = share(times, part);
  isGood &&= judged <= mark;
  const line = { what, count: times.length, p50: share(times, 0.5), p95: share(times, 0.95), judged, mark };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** A provider of OpenAI's wire that refuses the first request with 429, and sends the first word of an answer after a while. */
async function withProvider(work: (url: string, sentMs: () => number) => Promise<void>): Promise<void> {
  let [requests, sentMs] = [0, 0];
  const event = (response: ServerResponse, delta: object, reason: string | null = null): void => {
    const choice = { index: 0, delta, finish_reason: reason };
    response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [choice] })}\n\n`);
  };
  const server = createServer((request, response) => {
    request.resume().on("end", async () => {
      requests += 1;
      if (requests === 1) {
        response.writeHead(429, { "retry-after": "7", "content-type": "application/json" });
        return void response.end(`{"error":{"message":"slow down"}}`);
      }
      await sleep(300);
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      await sleep(100);
      sentMs = performance.now();
      event(response, { role: "assistant", content: `token${requests} ` });
      await sleep(100);
      event(response, { content: "the rest." }, "stop");
      response.end("data: [DONE]\n\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => sentMs);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function measureTurns(bin: string, home: string): Promise<void> {
  await withProvider(async (url, sentMs) => {
    const environment = { OPENAI_API_KEY: "any", OPENAI_BASE_URL: `${url}/v1` };
    const chat = new Chat(bin, ["--key", "turns", "--model", "openai/gpt-4.1"], home, environment);
    try {
      await chat.shown(atPrompt);
      const [signs, tokens]: [number[], number[]] = [[], []];
      for (let round = 2; round < rounds + 2; round++) {
        const from = chat.raw.length;
        signs.push(await chat.timed(`question ${round}\r`, /[⠋⠙⠹⠸⠼⠴⠦⠧]/));
        const shownMs = await chat.shown(new RegExp(`token${round}`), from);
        tokens.push(shownMs - sentMs());
        await chat.shown(atPrompt, from);
      }
      tell("sign of life", signs, marks.signOfLife, 0.95);
      // The first answer waited for seven seconds; the second is the first that nothing was loaded for.
      tell("first token", tokens.slice(1), marks.firstToken);
      const seconds = [...new Set(Array.from(chat.raw.matchAll(/retry in (\d) s/g), ([, second]) => second))];
      isGood &&= seconds.join("") === "7654321";
      process.stdout.write(`${JSON.stringify({ what: "countdown of retry-after: 7", seconds })}\n`);
    } finally {
      await chat.end();
    }
  });
}

async function fillStore(store: SessionStore): Promise<void> {
  for (let at = 0; at < sessionCount; at++) {
    const ref = sessionRef({ key: `agent:main:cli:direct:s${at}` });
    await store.save(ref, { sessionId: `id-${at}`, label: `Session number ${at} 会議${at}` }, { ifRevision: null });
    const drafts = Array.from({ length: perSession }, (_, each) => ({
      type: "message",
      message: {
        role: each % 2 === 0 ? "user" : "assistant",
        content: `lamp${at} turn ${each} ${"of words ".repeat(20)}`,
      },
    }));
    await store.append(ref, drafts, { durability: "process" });
  }
}

async function measurePicker(bin: string, home: string): Promise<void> {
  const chat = new Chat(bin, ["--key", "other", "--model", "offline"], home);
  try {
    await chat.shown(atPrompt);
    const count = new Intl.NumberFormat("en-US").format(sessionCount);
    await chat.timed("/resume\r", new RegExp(`${count} sessions`));
    const [names, texts]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const number = String(Math.floor((sessionCount / rounds) * round) + 7);
      // Each key changes which characters of the names are underlined.
      for (const key of ["会", ...number]) {
        names.push(await chat.timed(key, /\[4m/));
        await sleep(200);
      }
      chat.write("\u001b");
      await sleep(300);
      // The word is in the texts only. The wait of 80 ms before the search is part of the time.
      texts.push(await chat.timed(`\u001b[200~lamp${number}\u001b[201~`, /in the texts/));
      chat.write("\u001b");
      await sleep(300);
    }
    tell("picker: names after a key", names, marks.names);
    tell("picker: texts after the last key", texts, marks.texts, 0.95);
  } finally {
    await chat.end();
  }
}

async function measureResume(bin: string, home: string, store: SessionStore): Promise<void> {
  const chat = new Chat(bin, ["--key", "other", "--model", "offline"], home);
  try {
    await chat.shown(atPrompt);
    const times: number[] = [];
    for (let round = 0; round < 5; round++) {
      times.push(await chat.timed(`/switch ${longKey}\r`, /Restored: [\s\S]*\]133;D/));
      await chat.timed("/switch other\r", atPrompt);
    }
    tell(`switch to a session of ${recordCount} records`, times, marks.resume);
    await chat.timed(`/switch ${longKey}\r`, atPrompt);
    await sleep(500);
    const [from, beganMs] = [chat.raw.length, performance.now()];
    const message = { role: "user", content: "from elsewhere" };
    await store.append(sessionRef({ key: longKey }), [{ type: "message", message }]);
    tell("changed elsewhere", [(await chat.shown(/changed elsewhere/, from)) - beganMs], marks.elsewhere);
  } finally {
    await chat.end();
  }
  const [long, empty] = [await startMs(bin, longKey, home), await startMs(bin, "other", home)];
  tell("start in it, over a start in an empty one", [long - empty], marks.resume);
}

/** Returns the time from the start of the program to the prompt that reads. */
async function startMs(bin: string, key: string, home: string): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const beganMs = performance.now();
    const chat = new Chat(bin, ["--key", key, "--model", "offline"], home);
    times.push((await chat.shown(atPrompt)) - beganMs);
    await chat.end();
  }
  return share(times, 0.5);
}

const folder = mkdtempSync(join(tmpdir(), "throughline-chat-times-"));
try {
  const { bin } = await installBundle(join(folder, "program"));
  await measureTurns(bin, join(folder, "turns"));
  const own = join(folder, "sessions");
  mkdirSync(join(own, "home"), { recursive: true });
  const store = createSqliteStore({ path: join(own, "home/sessions.db") });
  await fillStore(store);
  await measurePicker(bin, own);
  await fillSession(store, recordCount);
  await measureResume(bin, own, store);
  await store.close();
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
if (process.argv.includes("--check") && !isGood) process.exitCode = 1;
