import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { hasErrorCode } from "@throughline/core";
import {
  appendAssistantMessageToSessionTranscript,
  clearSessionStoreCacheForTest,
  loadSessionStore,
  recordSessionMetaFromInbound,
  resolveDefaultSessionStorePath,
  resolveSendPolicy,
  resolveSessionTranscriptPath,
  resolveSessionTranscriptsDirForAgent,
  resolveStorePath,
  saveSessionStore,
  updateLastRoute,
  updateSessionStore,
  updateSessionStoreEntry,
  withSessionStoreLock,
} from "@throughline/openclaw-compat";
import { bundledWorker } from "../../../tools/bundle-worker.ts";

const script = bundledWorker(new URL("./functions-process.ts", import.meta.url));

const sessionKey = "agent:main:discord:dm:user123";
let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "throughline-functions-"));
  vi.stubEnv("THROUGHLINE_HOME", home);
  vi.stubEnv("OPENCLAW_SESSION_CACHE_TTL_MS", "");
  clearSessionStoreCacheForTest();
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(home, { recursive: true, force: true });
});

const indexOf = (storePath: string): Record<string, Record<string, unknown>> =>
  JSON.parse(readFileSync(storePath, "utf8")) as Record<string, Record<string, unknown>>;

describe("the session functions by their names", () => {
  it("wait for another program's lock of sessions.json for timeoutMs, and change nothing then", async () => {
    const path = resolveDefaultSessionStorePath();
    await updateSessionStore(path, (store) => void (store[sessionKey] = { sessionId: "s1", updatedAt: 1 }));
    const lock = `${path}.lock`;
    writeFileSync(lock, JSON.stringify({ pid: process.ppid, createdAt: new Date().toISOString() }));
    const change = (model: string) =>
      updateSessionStore(path, (store) => void (store[sessionKey] = { sessionId: "s1", updatedAt: 1, model }), {
        timeoutMs: 60,
      });
    await expect(change("lost")).rejects.toMatchObject({ code: "STORE_LOCKED", details: { path: lock } });
    await expect(withSessionStoreLock(path, () => Promise.resolve(1), { timeoutMs: 0 })).rejects.toMatchObject({
      code: "STORE_LOCKED",
    });
    expect(existsSync(lock)).toBe(true);
    expect(await loadSessionStore(path)).toMatchObject({ [sessionKey]: { sessionId: "s1" } });
    expect((await loadSessionStore(path))[sessionKey]).not.toHaveProperty("model");
    rmSync(lock);
    await change("kept");
    expect(indexOf(path)[sessionKey]?.["model"]).toBe("kept");
  });

  it("do what the document prints, on the files of a state directory", async () => {
    const storePath = resolveDefaultSessionStorePath();
    expect(await loadSessionStore(storePath)).toEqual({});
    await updateSessionStore(storePath, (store) => {
      store[sessionKey] = { ...store[sessionKey], sessionId: "s1", sdkSessionId: "sdk-1", updatedAt: Date.now() };
    });
    expect(indexOf(storePath)).toMatchObject({ [sessionKey]: { sessionId: "s1", sdkSessionId: "sdk-1" } });
    const store = await loadSessionStore(storePath, { skipCache: true });
    await saveSessionStore(storePath, {
      ...store,
      [sessionKey]: { ...store[sessionKey], sessionId: "s1", label: "L" },
    });
    const update = (): Record<string, unknown> => ({ model: "m" });
    expect(await updateSessionStoreEntry({ storePath, sessionKey, update })).toMatchObject({ label: "L", model: "m" });
    await recordSessionMetaFromInbound({ storePath, sessionKey, ctx: { ChatType: "direct", From: "user123" } });
    await updateLastRoute({ storePath, sessionKey, channel: "discord", to: "user:7" });
    expect((await loadSessionStore(storePath))[sessionKey]).toMatchObject({
      label: "L",
      model: "m",
      chatType: "direct",
      lastChannel: "discord",
      deliveryContext: { channel: "discord", to: "user:7" },
    });
    const sent = await appendAssistantMessageToSessionTranscript({
      agentId: "main",
      sessionKey,
      text: "Message sent to user",
      mediaUrls: ["https://example.com/image.png"],
    });
    expect(sent).toMatchObject({ ok: true, sessionFile: resolveSessionTranscriptPath("s1") });
    expect(readFileSync(resolveSessionTranscriptPath("s1", "main"), "utf8")).toContain("Message sent to user");
    expect(readdirSync(home)).toEqual(["agents"]);
  });

  it("resolve paths below the home, and a policy by its configuration", () => {
    const folder = join(home, "agents/codex/sessions");
    expect(resolveSessionTranscriptsDirForAgent("codex")).toBe(folder);
    expect(resolveSessionTranscriptPath("s1", "codex", "a b")).toBe(join(folder, "s1-topic-a%20b.jsonl"));
    expect(resolveStorePath("~/{agentId}/sessions.json", { agentId: "codex" })).toBe(
      join(homedir(), "codex/sessions.json"),
    );
    expect(resolveStorePath()).toBe(resolveDefaultSessionStorePath("main"));
    const cfg = { session: { sendPolicy: { default: "deny" } } };
    expect(resolveSendPolicy({ cfg, sessionKey })).toBe("deny");
    expect(resolveSendPolicy({ cfg, sessionKey, entry: { sessionId: "s", sendPolicy: "allow" } })).toBe("allow");
  });

  it("take no path for a state directory that is none", async () => {
    const failed: unknown = await loadSessionStore("/sessions.json").catch((error: unknown) => error);
    expect(hasErrorCode(failed, "INPUT_INVALID")).toBe(true);
    expect(existsSync("/x")).toBe(false);
  });

  it("use loaded entries again while nobody changes them, unless the cache is off", { tags: ["slow"] }, async () => {
    const storePath = resolveDefaultSessionStorePath();
    const write = (label: string): Promise<unknown> =>
      updateSessionStore(storePath, (store) => {
        store[sessionKey] = { sessionId: "s1", label };
      });
    const label = async (): Promise<unknown> => (await loadSessionStore(storePath))[sessionKey]?.label;
    await write("a");
    expect(await label()).toBe("a");
    expect(await runFunctions("label", storePath, "b")).toBe(0);
    expect(await label()).toBe("b");
    vi.stubEnv("OPENCLAW_SESSION_CACHE_TTL_MS", "0");
    expect(await runFunctions("label", storePath, "c")).toBe(0);
    expect(await label()).toBe("c");
  });
});

describe("withSessionStoreLock", () => {
  it("excludes other processes, and nested calls do not wait for it", { tags: ["slow"], timeout: 60_000 }, async () => {
    const storePath = resolveDefaultSessionStorePath();
    await updateSessionStore(storePath, (store) => {
      store[sessionKey] = { sessionId: "s1", counted: 0 };
    });
    const children = Array.from({ length: 4 }, () => runFunctions("count", storePath, "10"));
    expect(await Promise.all(children)).toEqual([0, 0, 0, 0]);
    expect((await loadSessionStore(storePath))[sessionKey]?.["counted"]).toBe(40);
    expect(indexOf(storePath)[sessionKey]?.["counted"]).toBe(40);
  });

  it("names its holder at the timeout, is free after a throw and a kill, and leaves no folder behind", async () => {
    const storePath = resolveDefaultSessionStorePath();
    mkdirSync(join(home, "agents/main/sessions"), { recursive: true });
    const holder = start("hold", storePath, "0");
    await once(holder.stdout, "data");
    const waiting = withSessionStoreLock(storePath, () => Promise.resolve(1), { timeoutMs: 50, pollIntervalMs: 5 });
    const error = (await waiting.catch((thrown: unknown) => thrown)) as Error;
    expect(hasErrorCode(error, "STORE_LOCKED")).toBe(true);
    expect(error.message).toContain(`process ${holder.pid}`);
    holder.kill("SIGKILL");
    await once(holder, "close");
    const failing = withSessionStoreLock(storePath, () => Promise.reject(new Error("mine")));
    await expect(failing).rejects.toThrow("mine");
    expect(await withSessionStoreLock(storePath, () => Promise.resolve("done"), { timeoutMs: 50 })).toBe("done");
    expect(readdirSync(home)).toEqual(["agents"]);
    expect(readdirSync(join(home, "agents"))).toEqual(["main"]);
    expect(readdirSync(join(home, "agents/main")).toSorted()).toEqual(["sessions", "throughline"]);
  });
});

function start(act: string, storePath: string, value: string): ChildProcessByStdio<null, Readable, null> {
  return spawn(process.execPath, ["--conditions=@throughline/source", script, act, storePath, sessionKey, value], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

async function runFunctions(act: string, storePath: string, value: string): Promise<number | null> {
  const [code] = (await once(start(act, storePath, value), "close")) as [number | null];
  return code;
}
