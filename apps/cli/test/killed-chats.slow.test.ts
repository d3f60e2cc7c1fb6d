import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isFields, messageRole, recordText } from "@throughline/core/internal";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { isLongRun, testSize } from "../../../tools/test-size.ts";
import { objects, runHere, temporaryDirectory } from "./harness.ts";
import { screenOf } from "./screens.ts";
import { runInTerminal, say, type Terminal } from "./terminal.ts";

/** Each round is a chat of its own on a terminal, which is killed at a random moment of its reply: over 100 for a store. */
const rounds = testSize({ short: 1, long: 34 });
vi.setConfig({ testTimeout: 120_000 + rounds * 60_000 });

/** A long run kills at any moment of this time after the request; a short one when text is due on disk. */
const longestMs = 4000;
/** A short run waits for this text on the screen, and then for the time in which the chat stores it. */
const leastSeen = 400;
const words = Array.from({ length: 4000 }, (_, at) => `word${at} `).join("");
/** A shorter text is asked for again, and not continued. */
const leastContinued = 80;
const key = "agent:main:cli:direct:killed";

const providers = [
  ["anthropic/claude-opus-5", (url: string) => ({ ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: url })],
  ["openai/gpt-5", (url: string) => ({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1` })],
  ["ollama/qwen3:8b", (url: string) => ({ OLLAMA_HOST: url })],
] as const;
const stores = [
  ["sqlite", (folder: string) => `sqlite:${join(folder, "chats.db")}`],
  ["jsonl", (folder: string) => `jsonl:${join(folder, "chats")}`],
] as const;
/** A short run takes another provider for each store. */
function providersOf(kind: string): readonly (typeof providers)[number][] {
  return providers.filter(([name]) => isLongRun || name.startsWith(kind === "jsonl" ? "ollama" : "anthropic"));
}

let directory = temporaryDirectory();
let provider: ProviderSimulator;
/** A reply that is asked for again after the kill is short. */
let isKilled = false;
beforeEach(async () => {
  provider = createProviderSimulator({
    ollamaContextTokens: 100_000,
    fallback: ({ body }) => {
      const last = lastUserText(body);
      if (last === "Write a lot" && !isKilled) return { kind: "answer", content: words, eventDelayMs: 4 };
      return { kind: "answer", content: last.includes("cut off") ? "The rest." : "Short." };
    },
  });
  await provider.start();
});
afterEach(async () => {
  await provider.close();
  directory.remove();
});

/** Returns the text of the newest message of the person in a request of any of the three providers. */
function lastUserText(body: unknown): string {
  const { messages, input } = body as { readonly messages?: unknown; readonly input?: unknown };
  const all = (messages ?? input) as readonly { readonly role?: string; readonly content?: unknown }[];
  const content = all.findLast(({ role }) => role === "user")?.content;
  if (typeof content === "string") return content;
  return (content as readonly { readonly text?: string }[]).map(({ text = "" }) => text).join("");
}

/** Returns how much of the reply the bytes show. A number that is cut by the end of the bytes is smaller than those before it. */
function shownCharacters(raw: string): number {
  let last = -1;
  for (const [, digits] of raw.matchAll(/word(\d+)/g)) last = Math.max(last, Number(digits));
  return last < 0 ? 0 : words.indexOf(`word${last} `) + `word${last}`.length;
}

interface Killed {
  /** Characters that the terminal had a second before the kill, and as long as the machine was late. */
  readonly due: number;
  /** Characters that it had a second before the kill. */
  readonly dueQuiet: number;
  readonly shown: number;
}

interface Watched {
  readonly seen: { readonly atMs: number; readonly length: number }[];
  /** Returns a second, and as long as the machine was late. A busy machine delays the chat as it delays the timers here. */
  readonly allowedMs: () => number;
}

const sleep = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

/** Resolves when a chat has shown text for as long as it may take to store it. Returns that time. */
async function textIsDue(chat: Terminal, { seen, allowedMs }: Watched): Promise<number> {
  const shows = (least: number): Promise<void> =>
    expect.poll(() => shownCharacters(chat.raw()), { interval: 5, timeout: 60_000 }).toBeGreaterThanOrEqual(least);
  await shows(leastSeen);
  const seenAtMs = Date.now();
  seen.push({ atMs: seenAtMs, length: chat.raw().length });
  while (Date.now() - seenAtMs < allowedMs()) await sleep(5);
  // The chat itself may have waited for the machine. Text that it shows now comes after its timers.
  await shows(shownCharacters(chat.raw()) + leastSeen);
  return Date.now() - seenAtMs;
}

async function killedInReply(chat: Terminal, requestsBefore: number): Promise<Killed> {
  const seen: Watched["seen"] = [];
  using delays = Object.assign(monitorEventLoopDelay({ resolution: 10 }), {
    [Symbol.dispose]: () => delays.disable(),
  });
  delays.enable();
  await chat.waitForPrompt();
  const watched = setInterval(() => seen.push({ atMs: Date.now(), length: chat.raw().length }), 5);
  chat.write("Write a lot\r");
  await expect.poll(() => provider.requests.length, { interval: 5, timeout: 60_000 }).toBeGreaterThan(requestsBefore);
  const allowedMs = (): number => 1000 + 2 * (delays.max / 1e6);
  const dueMs = isLongRun ? null : await textIsDue(chat, { seen, allowedMs });
  if (isLongRun) await sleep(Math.random() * longestMs);
  const killedAtMs = Date.now();
  chat.kill("SIGKILL");
  isKilled = true;
  await chat.exitCode();
  clearInterval(watched);
  const raw = chat.raw();
  const shownBefore = (ms: number): number =>
    shownCharacters(raw.slice(0, seen.findLast(({ atMs }) => atMs <= killedAtMs - ms)?.length ?? 0));
  return { due: shownBefore(dueMs ?? allowedMs()), dueQuiet: shownBefore(1000), shown: shownCharacters(raw) };
}

interface Message {
  readonly role: string | null;
  readonly text: string;
  readonly isRecovered: boolean;
  readonly source: unknown;
}

async function storedMessages(store: string): Promise<readonly Message[]> {
  const { stdout } = await runHere(directory.path, ["show", key, "--store", store, "--json", "--quiet"]);
  return objects(stdout).flatMap(({ record }) => {
    if (!isFields(record) || !isFields(record["message"])) return [];
    const { recovered, source } = record["message"];
    const role = messageRole(record as never);
    return [{ role, text: recordText(record as never), isRecovered: recovered === true, source }];
  });
}

/** Counts over all rounds, for the report of a long run. */
const noCounts = {
  kills: 0,
  beforeText: 0,
  askedAgain: 0,
  continued: 0,
  keptInASecond: 0,
  characters: 0,
  mostBehind: 0,
};
const counts = { ...noCounts };

async function killAndResume(model: string, environment: Readonly<Record<string, string>>, store: string) {
  const start = (): Terminal =>
    runInTerminal(directory.path, ["chat", "--key", key, "--model", model, "--store", store], { environment });
  isKilled = false;
  await using chat = start();
  const { due, dueQuiet, shown } = await killedInReply(chat, provider.requests.length);
  counts.kills += 1;
  counts.beforeText += shown === 0 ? 1 : 0;
  if (!isLongRun) expect(due).toBeGreaterThan(0);

  const before = await storedMessages(store);
  await using next = start();
  await next.waitForPrompt();
  expect(next.text()).toContain("was interrupted");
  // Opening changes nothing.
  expect(await storedMessages(store)).toEqual(before);
  await say(next, "/continue");
  const request = provider.requests.at(-1);
  await say(next, "Be short");
  expect((await screenOf(next)).join("\n")).toContain("Short.");
  next.write("/quit\r");
  expect(await next.exitCode()).toBe(0);

  const after = await storedMessages(store);
  const recovered = after.filter(({ isRecovered }) => isRecovered);
  const [{ text: kept } = { text: "" }] = recovered;
  expect(recovered.length, "recovered replies").toBeLessThanOrEqual(1);
  expect(words.startsWith(kept)).toBe(true);
  expect(kept.length, `of ${shown} characters shown, ${due} a second before the kill`).toBeGreaterThanOrEqual(due);
  expect(provider.refusals).toEqual([]);
  const isContinued = kept.length >= leastContinued;
  counts.askedAgain += isContinued ? 0 : 1;
  counts.continued += isContinued ? 1 : 0;
  counts.keptInASecond += kept.length >= dueQuiet ? 1 : 0;
  counts.characters += kept.length;
  counts.mostBehind = Math.max(counts.mostBehind, shown - kept.length);
  expect(lastUserText(request?.body).includes("cut off")).toBe(isContinued);
  if (isContinued) expect(JSON.stringify(request?.body)).toContain(kept.trim().slice(-60));
  expect(after.map(({ role, isRecovered, source }) => [role, isRecovered, source === "continue"])).toEqual([
    ["user", false, false],
    ...(kept === "" ? [] : [["assistant", true, false]]),
    ...(isContinued ? [["user", false, true]] : []),
    ["assistant", false, false],
    ["user", false, false],
    ["assistant", false, false],
  ]);
}

describe.each(stores)("a chat that is killed while it answers, over %s", (kind, storeIn) => {
  it.each(providersOf(kind))(
    "keeps what stood a second, once, and /continue and the next message are valid, with %s",
    async (model, environment) => {
      Object.assign(counts, noCounts);
      for (let round = 0; round < rounds; round++) {
        directory.remove();
        directory = temporaryDirectory();
        await killAndResume(model, environment(provider.url), storeIn(directory.path));
      }
      if (rounds > 1) process.stdout.write(`${JSON.stringify({ kind, model, ...counts })}\n`);
    },
  );
});
