import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { createSessions } from "@throughline/session";
import { LateTimers, until } from "@throughline/test-kit";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { testSize } from "../../../tools/test-size.ts";
import type { TurnStreamEvent } from "../src/turn-stream-event.ts";
import { openStore } from "./process-store.ts";
import { providerCases } from "./provider-cases.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { allRecords, key } from "./session-fixture.ts";

const script = bundledWorker(new URL("./stream-process.ts", import.meta.url));
const rounds = testSize({ short: 1, long: 100 });
vi.setConfig({ testTimeout: 60_000 + rounds * 30_000 });

/** How long a process streams before the kill: over a second, or nothing is due. */
const streamMs = testSize({ short: { least: 1200, spread: 800 }, long: { least: 0, spread: 4000 } });
const words = Array.from({ length: 4000 }, (_, at) => `word${at} `).join("");
let folder = "";
let provider: ProviderSimulator;
let children: ChildProcess[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "killed-streams-"));
  provider = createProviderSimulator({
    fallback: ({ body }) => {
      const isLong = JSON.stringify(body).includes("Write a lot") && !JSON.stringify(body).includes("Be short");
      return { kind: "answer", content: isLong ? words : "Short.", eventDelayMs: isLong ? 4 : 0 };
    },
  });
  await provider.start();
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  children = [];
  await provider.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Shown {
  readonly atMs: number;
  readonly characters: number;
  /** How late a timer of the process was at most until then. */
  readonly lateMs?: number;
  readonly isDone?: boolean;
}

/** A write of the open reply: `writing` when it began, `written` when the store acknowledged it. */
interface Written {
  readonly atMs: number;
  readonly writing?: number;
  readonly written?: number;
}

interface Streaming {
  readonly child: ChildProcess;
  readonly shown: Shown[];
  readonly writes: Written[];
  readonly ended: Promise<unknown>;
}

/** Starts a process that answers, and collects what it shows. */
function stream(kind: string, name: string, text: string): Streaming {
  const child = spawn(process.execPath, [script, kind, folder, name, provider.url, text], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const shown: Shown[] = [];
  const writes: Written[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    const said = JSON.parse(line) as Shown | Written;
    if ("characters" in said) shown.push(said);
    else writes.push(said);
  });
  return { child, shown, writes, ended: once(child, "close") };
}

async function recoveredTexts(kind: string): Promise<readonly string[]> {
  await using store = openStore(kind, folder);
  return (await allRecords(store)).flatMap(({ record }) => {
    const message = record["message"] as { readonly recovered?: true; readonly content: unknown } | undefined;
    return message?.recovered === true ? [(message.content as readonly { text: string }[])[0]?.text ?? ""] : [];
  });
}

const stores = ["sqlite", "jsonl"] as const;
const providers = providerCases.slice(0, 3).map(({ name }) => name);

describe.each(stores)("a process that is killed while it streams, over %s", (kind) => {
  it("leaves all that was shown a second before, recovered once by one of two processes", async () => {
    for (let round = 0; round < rounds; round++) {
      const name = providers[(round + stores.indexOf(kind)) % providers.length] ?? "";
      const { child, shown, writes, ended } = stream(kind, name, "Write a lot");
      // A machine with much to do may take long to start a process.
      await Promise.race([
        expect.poll(() => shown.length, { timeout: 60_000 }).toBeGreaterThan(0),
        ended.then(() => Promise.reject(new Error("The process ended before it showed anything."))),
      ]);
      await new Promise((resolve) => setTimeout(resolve, streamMs.least + Math.random() * streamMs.spread));
      const killedAtMs = Date.now();
      child.kill("SIGKILL");
      await ended;
      const next = [stream(kind, name, "Be short"), stream(kind, name, "Be short, too")];
      await Promise.all(next.map((each) => each.ended));
      expect(next.map((each) => each.shown.at(-1)?.isDone)).toEqual([true, true]);
      const texts = await recoveredTexts(kind);
      const lastMs = Math.max(shown.at(-1)?.atMs ?? 0, writes.at(-1)?.atMs ?? 0);
      // A process that was held up when it was killed could not say so any more.
      const lateMs = Math.max(shown.at(-1)?.lateMs ?? 0, killedAtMs - lastMs);
      const acknowledged = writes.findLast(({ written }) => written !== undefined)?.written ?? 0;
      const due = shown.findLast(({ atMs }) => atMs <= killedAtMs - 1000 - lateMs)?.characters ?? 0;
      const aheadMs = killedAtMs - (shown[0]?.atMs ?? 0);
      expect(texts.length, `round ${round}`).toBeLessThanOrEqual(1);
      const [text = ""] = texts;
      expect(words.startsWith(text)).toBe(true);
      const log = writes.map(
        ({ atMs, writing, written }) =>
          `${atMs - killedAtMs} ${writing === undefined ? `written ${written}` : `writing ${writing}`}`,
      );
      expect(text.length, `round ${round}: ${log.join(", ")}`).toBeGreaterThanOrEqual(acknowledged);
      const told = `round ${round}: ${text.length} of ${due}, first shown ${aheadMs} ms before, late by ${lateMs} ms`;
      expect(text.length, told).toBeGreaterThanOrEqual(due);
      expect(provider.refusals).toEqual([]);
      rmSync(folder, { recursive: true, force: true });
      folder = mkdtempSync(join(tmpdir(), "killed-streams-"));
    }
  });

  it("is followed by another process at most 2 s behind, and the reader ends within 2 s after the kill", async () => {
    const { child, shown, ended } = stream(kind, providers[0] ?? "", "Write a lot");
    await until(() => (shown.at(-1)?.characters ?? 0) > 2000);
    await using store = openStore(kind, folder);
    await using sessions = createSessions({ store, model: { chat: createScriptedModel(), modelId: "none" } });
    using timers = new LateTimers();
    const attached = (await sessions.attach(key)) ?? expect.unreachable("no turn runs");
    let text = "";
    let behindMs = 0;
    let snapshots = 0;
    let killedAtMs: number | null = null;
    let last: TurnStreamEvent | null = null;
    for await (const event of attached) {
      last = event;
      const nowMs = Date.now();
      if (event.name === "text.snapshot") {
        // What was said so far comes first, and is not waited for.
        expect(text).toBe("");
        text = event.text;
        snapshots += 1;
      }
      if (event.name === "text.delta") text += event.text;
      if (killedAtMs !== null) continue;
      // Every character that was shown 2 s ago is here.
      const due = shown.findLast(({ atMs }) => text.length < 20_000 && atMs <= nowMs)?.characters ?? 0;
      const missing = shown.find(({ characters }) => characters > text.length);
      if (due > text.length && missing !== undefined) behindMs = Math.max(behindMs, nowMs - missing.atMs);
      if (text.length < 6000) continue;
      killedAtMs = Date.now();
      child.kill("SIGKILL");
      await ended;
    }
    expect(snapshots).toBe(1);
    expect(words.startsWith(text)).toBe(true);
    const endedMs = Date.now() - (killedAtMs ?? 0);
    // A busy machine delays the writer, its timers, and this reader.
    const lateMs = 2 * (timers.mostMs + Math.max(...shown.map((each) => each.lateMs ?? 0)));
    expect(behindMs).toBeLessThan(2000 + lateMs);
    expect(last?.name).toBe("turn.interrupted");
    expect(endedMs).toBeLessThan(2000 + lateMs);
    expect(await sessions.attach(key)).toBeNull();
    const session = await sessions.open(key);
    expect(words.startsWith(session.partialReply?.text ?? "none")).toBe(true);
  });

  it("is followed to its end by several readers, who get the whole text once and the result", async () => {
    const short = words.slice(0, 3000);
    provider.enqueue({ kind: "answer", content: short, eventDelayMs: 15 });
    const { shown, ended } = stream(kind, providers[0] ?? "", "Write");
    await until(() => (shown.at(-1)?.characters ?? 0) > 500);
    await using store = openStore(kind, folder);
    await using sessions = createSessions({ store, model: { chat: createScriptedModel(), modelId: "none" } });
    const session = await sessions.open(key);
    const readers = await Promise.all([session.attach(), sessions.attach(key)]);
    const all = await Promise.all(readers.map((reader) => Array.fromAsync(reader ?? [])));
    await ended;
    for (const events of all) {
      const text = events.reduce(
        (sum, event) =>
          event.name === "text.snapshot" ? event.text : event.name === "text.delta" ? sum + event.text : sum,
        "",
      );
      expect(text).toBe(short);
      expect(events.at(-1)).toMatchObject({
        name: "turn.result",
        turn: { outcome: "done", text: short, replayed: false },
      });
    }
  });
});
