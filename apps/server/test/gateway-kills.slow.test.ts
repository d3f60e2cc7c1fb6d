import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { StoredRecord } from "@throughline/core";
import type { GatewayMode } from "@throughline/server";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";

let folder = "";
let provider: ProviderSimulator;
let child: ChildProcess | null = null;
let token = "";
beforeEach(async () => {
  folder = mkdtempSync(join(quickFolder(), "throughline-gateway-kills-"));
  provider = createProviderSimulator({ fallback: () => "Heard to its end." });
  await provider.start();
  token = "";
});
afterEach(async () => {
  await kill();
  await provider.close();
  rmSync(folder, { recursive: true, force: true });
});

/** @param appendMs how long the store takes for the records of a call */
async function start(mode: GatewayMode, appendMs: number): Promise<string> {
  const script = bundledWorker(new URL("./served-gateway.ts", import.meta.url));
  child = fork(script, [folder, mode, provider.url, token, String(appendMs)]);
  const [served] = (await once(child, "message")) as [{ readonly url: string; readonly token: string }];
  token = served.token;
  return served.url;
}

async function kill(): Promise<void> {
  if (child === null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
  child = null;
}

/** The texts of the messages of all sessions, and how many exchanges there are. */
async function stored(): Promise<{ readonly texts: string; readonly exchanges: number }> {
  await using store = createSqliteStore({ path: join(folder, "sessions.db") });
  const records: StoredRecord[] = [];
  for (const { ref } of (await store.list({ namespace: "" })).sessions)
    for await (const page of store.read(ref)) records.push(...page.records);
  const texts = records.flatMap(({ record }) => (record.type === "message" ? [JSON.stringify(record["message"])] : []));
  return { texts: texts.join(), exchanges: records.filter(({ id }) => id.startsWith("x-")).length };
}

describe("a call that a client heard to its end", () => {
  it.each(["record", "guard", "stateful"] as const)("survives kill -9 in %s mode", async (mode) => {
    const url = await start(mode, 250);
    const client = new Anthropic({ apiKey: token, baseURL: `${url}/anthropic`, maxRetries: 0 });
    const stream = client.messages.stream({
      model: "claude-opus-5",
      max_tokens: 99,
      messages: [{ role: "user", content: "Will it last?" }],
    });
    const killed = new Promise<void>((resolve) => {
      stream.on("streamEvent", ({ type }) => {
        if (type === "message_stop") resolve(kill());
      });
    });
    stream.on("error", () => {});
    await killed;
    // In stateful mode the store itself has the call by then.
    if (mode !== "stateful") expect((await stored()).texts).not.toContain("Heard to its end.");
    await start(mode, 0);
    await expect.poll(stored).toMatchObject({
      texts: expect.stringMatching(/Will it last\?.*Heard to its end\./) as string,
      exchanges: 1,
    });
    await expect.poll(() => readdirSync(join(folder, "spool"))).toEqual([]);
  });
});
