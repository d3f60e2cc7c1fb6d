import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import type { StoredRecord } from "@throughline/core";
import { createHistory } from "@throughline/history";
import { recordsFromMessages } from "@throughline/history/openai";
import { createProviderSimulator } from "@throughline/testing";
import { importMessages } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findLoopProblems, killLoop } from "../../../tools/kill-loop.ts";
import { testSize } from "../../../tools/test-size.ts";

const example = join(import.meta.dirname, "..");
const program = join(example, "src/main.ts");
const environment = (url: string) => ({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1` });

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "throughline-example-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function records(path: string): Promise<readonly StoredRecord[]> {
  await using store = createSqliteStore({ path });
  const [session] = (await store.list()).sessions;
  if (session === undefined) return [];
  const pages = await Array.fromAsync(store.read(session.ref));
  return pages.flatMap((page) => page.records);
}

describe("the loop around OpenAI's SDK", () => {
  it("answers, and gives the same answer when the message comes again", async () => {
    const read = { type: "tool-call", name: "read_file", input: { name: "notes.txt" } } as const;
    await using provider = createProviderSimulator({
      replies: [{ kind: "answer", content: [read] }, "It opens at six."],
    });
    await provider.start();
    const args = ["--silent", "start", "--", "What is in notes.txt?", "message-1", join(folder, "sessions.db")];
    const env = { ...process.env, ...environment(provider.url) };
    const run = (): Promise<{ stdout: string }> => promisify(execFile)("npm", args, { cwd: example, env });
    expect((await run()).stdout).toBe("It opens at six.\n");
    expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain("The harbor opens at six.");
    expect((await run()).stdout).toBe("It opens at six.\n");
    expect(provider.requests).toHaveLength(2);
    expect(provider.refusals).toEqual([]);
  });

  it("keeps a long conversation inside the window of the model", async () => {
    const path = join(folder, "sessions.db");
    const said = (index: number): string =>
      `Part ${index}: ${"the harbor opens at six and closes at nine. ".repeat(10)}`;
    const kept = Array.from({ length: 120 }, (_, index) => ({
      role: index % 2 === 0 ? "user" : "assistant",
      content: said(index),
    }));
    await using store = createSqliteStore({ path });
    await importMessages(store, "home", recordsFromMessages(kept));
    const models = { "*": { windowTokens: 16_000 } };
    await using provider = createProviderSimulator({ models, replies: ["At six."] });
    await provider.start();
    const env = { ...process.env, ...environment(provider.url), WINDOW_TOKENS: "6000" };
    const { stdout } = await promisify(execFile)(process.execPath, [program, "When?", "message-1", path], { env });
    expect(stdout).toBe("At six.\n");
    expect(provider.refusals).toEqual([]);
    const sent = provider.requests[0]?.body as { readonly messages: readonly unknown[] } | undefined;
    const messages = sent?.messages ?? [];
    expect(messages.length).toBeGreaterThan(10);
    expect(messages.length).toBeLessThan(60);
    expect(JSON.stringify(messages.slice(-2))).toMatch(/Part 119: .*When\?/);
  });

  it("loses nothing and does nothing twice however often it is killed", { timeout: 1_800_000 }, async () => {
    const kills = testSize({ short: 2, long: 30 });
    const run = await killLoop({ program, environment, folder, kills, seed: 1, records });
    const history = createHistory("openai", { trailingAssistant: "keep" });
    history.append(run.records);
    expect(findLoopProblems(run, history.render().messages)).toEqual([]);
    expect(run.kills).toHaveLength(kills);
  });
});
