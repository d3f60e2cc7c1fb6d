import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { createSqliteStore } from "@throughline/store-sqlite";
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
    expect(Date.now() - killedAtMs).toBeLessThan(2000);
    expect(types.at(-1)).toBe("finish");
    expect(await chats.resumeChat("c")).toBeNull();
    expect((await chats.listChats()).chats[0]?.activeStreamId).toBeNull();
  } finally {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});
