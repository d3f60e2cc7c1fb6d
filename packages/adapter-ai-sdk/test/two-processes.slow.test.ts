import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { createSqliteStore } from "@throughline/store-sqlite";
import { LateTimers } from "@throughline/test-kit";
import { expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { createChatStore } from "../src/chat-store.ts";

it("two processes that save one chat lose no message, and keep the order of each", async () => {
  const saves = testSize({ short: 20, long: 200 });
  const folder = mkdtempSync(join(tmpdir(), "throughline-chats-"));
  try {
    const path = join(folder, "s.db");
    const program = join(import.meta.dirname, "save-chats.ts");
    const run = (name: string): Promise<unknown> =>
      promisify(execFile)(process.execPath, ["--conditions=@throughline/source", program, path, name, String(saves)]);
    await Promise.all([run("one"), run("two")]);
    await using store = createSqliteStore({ path });
    const ids = (await createChatStore({ store }).loadChat("shared")).map(({ id }) => id);
    const ofProcess = (name: string): readonly string[] => ids.filter((id) => id.startsWith(name));
    const wanted = (name: string): readonly string[] => Array.from({ length: saves }, (_, at) => `${name}-${at}`);
    expect(ids).toHaveLength(2 * saves);
    expect(ofProcess("one")).toEqual(wanted("one"));
    expect(ofProcess("two")).toEqual(wanted("two"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it("a stream ends within 2 s after the process that answers is killed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "throughline-chats-"));
  const path = join(folder, "s.db");
  const program = join(import.meta.dirname, "stream-chat.ts");
  const child = spawn(process.execPath, ["--conditions=@throughline/source", program, path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    await once(child.stdout, "data");
    await using store = createSqliteStore({ path });
    using timers = new LateTimers();
    const chats = createChatStore({ store });
    expect((await chats.listChats()).chats[0]?.activeStreamId).toBe("s1");
    const stream = (await chats.resumeChat("c")) ?? expect.unreachable("nothing is being answered");
    const types: string[] = [];
    let killedAtMs = 0;
    for await (const { type } of stream) {
      types.push(type);
      if (type !== "text-delta") continue;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
      killedAtMs = Date.now();
    }
    expect(Date.now() - killedAtMs).toBeLessThan(2000 + 2 * timers.mostMs);
    expect(types.at(-1)).toBe("finish");
    expect(await chats.resumeChat("c")).toBeNull();
    expect((await chats.listChats()).chats[0]?.activeStreamId).toBeNull();
  } finally {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});

it("another process reads text at most 2 s behind, and keeps it after the process that answers is killed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "throughline-chats-"));
  const path = join(folder, "s.db");
  const program = join(import.meta.dirname, "keep-chat.ts");
  const child = spawn(process.execPath, ["--conditions=@throughline/source", program, path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const given: { readonly atMs: number; readonly characters: number }[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => given.push(JSON.parse(line) as (typeof given)[0]));
    // On a busy machine the start of the process takes most of this.
    await expect.poll(() => given.length, { timeout: 150_000 }).toBeGreaterThan(50);
    await using store = createSqliteStore({ path });
    using timers = new LateTimers();
    const chats = createChatStore({ store });
    const stream = (await chats.resumeChat("c")) ?? expect.unreachable("nothing is being answered");
    let text = "";
    let behindMs = 0;
    let killedAtMs: number | null = null;
    for await (const chunk of stream) {
      if (chunk.type === "text-delta") text += String(chunk["delta"]);
      if (killedAtMs !== null) continue;
      const missing = given.find(({ characters }) => characters > text.length);
      if (text !== "" && missing !== undefined) behindMs = Math.max(behindMs, Date.now() - missing.atMs);
      if (text.length < 2000) continue;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
      killedAtMs = Date.now();
    }
    const endedMs = Date.now() - (killedAtMs ?? 0);
    // A busy machine delays this reader, and the writer: it gives a word every 20 ms.
    const lateMs = timers.mostMs + Math.max(...given.map(({ atMs }, at) => atMs - (given[at - 1]?.atMs ?? atMs)));
    expect(behindMs).toBeLessThan(2000 + 2 * lateMs);
    expect(endedMs).toBeLessThan(2000 + 2 * lateMs);
    const left = await chats.loadChat("c");
    expect(left).toHaveLength(2);
    expect(left.at(-1)?.parts.at(-1)).toEqual({ type: "text", text, state: "done" });
  } finally {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});
