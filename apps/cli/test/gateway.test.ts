import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import Anthropic from "@anthropic-ai/sdk";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isLongRun } from "../../../tools/test-size.ts";
import { objects, runHere, start, temporaryDirectory } from "./harness.ts";

let directory = temporaryDirectory();
let simulator: ProviderSimulator;
let child: ChildProcessWithoutNullStreams | null = null;
beforeEach(async () => {
  directory = temporaryDirectory();
  chmodSync(directory.path, 0o700);
  simulator = createProviderSimulator({ fallback: () => "Hello to you." });
  await simulator.start();
});
afterEach(async () => {
  child?.kill("SIGKILL");
  child = null;
  await simulator.close();
  directory.remove();
});

function configure(upstreams: unknown): void {
  writeFileSync(join(directory.path, "config.json"), JSON.stringify({ gateway: { upstreams } }));
}

const environment = { EXAMPLE_KEY: "key-of-the-account" };

/** Starts the server in a process of its own; gives the base URLs that it prints, by the variable they are for. */
async function serve(): Promise<ReadonlyMap<string, string>> {
  const started = start(directory.path, ["serve", "--port", "0"], { environment });
  child = started;
  let stderr = "";
  started.stderr.on("data", (chunk) => (stderr += chunk));
  await expect.poll(() => stderr).toMatch(/makes such a token\.\n/);
  const said = [...stderr.matchAll(/^Gateway ([a-z-]+): ([A-Z_]+)=(\S+);/gm)];
  return new Map(said.map(([, name = "", , url = ""]) => [name, url]));
}

async function tokenOf(scopes: string, ...more: readonly string[]): Promise<string> {
  const { stdout, code } = await runHere(directory.path, ["token", "create", "agent", "--scopes", scopes, ...more]);
  expect(code).toBe(0);
  return stdout.trim();
}

const json = async (...args: string[]): Promise<readonly Record<string, unknown>[]> =>
  objects((await runHere(directory.path, [...args, "--json"])).stdout);

describe("serve with gateway.upstreams", () => {
  it("records what the official SDKs send with nothing but a base URL and a token", { tags: ["slow"] }, async () => {
    const { url } = simulator;
    configure({
      anthropic: { api: "anthropic", baseUrl: url, apiKeyEnv: "EXAMPLE_KEY" },
      openai: { api: "openai", baseUrl: url, credentials: "server", apiKeyEnv: "EXAMPLE_KEY" },
      local: { api: "ollama", baseUrl: url },
    });
    const token = await tokenOf("gateway:anthropic,gateway:openai,gateway:local");
    const urls = await serve();
    const anthropic = new Anthropic({ apiKey: token, baseURL: urls.get("anthropic") ?? "", maxRetries: 0 });
    const question = { role: "user" as const, content: "Hello from Anthropic's SDK" };
    const first = await anthropic.messages.create({ model: "claude-opus-5", max_tokens: 99, messages: [question] });
    expect(first.content).toMatchObject([{ type: "text", text: "Hello to you." }]);
    const more = [question, { role: "assistant" as const, content: first.content }];
    const stream = anthropic.messages.stream({
      model: "claude-opus-5",
      max_tokens: 99,
      messages: [...more, { role: "user", content: "And again" }],
    });
    expect(await stream.finalText()).toBe("Hello to you.");
    const openai = new OpenAI({ apiKey: token, baseURL: urls.get("openai") ?? "", maxRetries: 0 });
    const response = await openai.responses.create({ model: "gpt-5", input: "Hello from OpenAI's SDK" });
    expect(response.output_text).toBe("Hello to you.");
    const ollama = new Ollama({ host: urls.get("local") ?? "", headers: { "throughline-token": token } });
    await ollama.chat({ model: "qwen3:8b", messages: [{ role: "user", content: "Hello from Ollama's" }] });

    const keys = simulator.requests.map(({ headers }) => headers["x-api-key"] ?? headers["authorization"]);
    const own = environment.EXAMPLE_KEY;
    expect(keys).toEqual([own, own, `Bearer ${own}`, undefined]);
    child?.kill("SIGTERM");
    await new Promise((resolve) => child?.once("close", resolve));
    const sessions = (await json("sessions")).filter(({ kind }) => kind === "session");
    expect(sessions.map(({ messageCount }) => messageCount).toSorted()).toEqual([2, 2, 4]);
    const key = String(sessions.find(({ messageCount }) => messageCount === 4)?.["key"]);
    const shown = (await runHere(directory.path, ["show", key, "--quiet"])).stdout;
    expect(shown.match(/Hello|And again/g)).toEqual(["Hello", "Hello", "And again", "Hello"]);
    const calls = (await json("explain", key)).filter(({ kind }) => kind === "call");
    expect(calls.map(({ provider, model }) => [provider, model])).toEqual(
      calls.map(() => ["anthropic", "claude-opus-5"]),
    );
    expect(calls).toHaveLength(2);
    expect((await runHere(directory.path, ["search", "And again"])).stdout).toContain("And again");
  });

  it("shows nothing of a call that waits for an encrypted store, and stores it", { tags: ["slow"] }, async () => {
    const init = await runHere(directory.path, ["encryption", "init", "--main-key", "file:main.key"]);
    expect(init.code).toBe(0);
    const upstreams = { anthropic: { api: "anthropic", baseUrl: simulator.url, apiKeyEnv: "EXAMPLE_KEY" } };
    const encryption = { keyring: "keys.db", mainKey: "file:main.key" };
    writeFileSync(join(directory.path, "config.json"), JSON.stringify({ gateway: { upstreams }, encryption }));
    const token = await tokenOf("gateway:anthropic");
    const urls = await serve();
    const client = new Anthropic({ apiKey: token, baseURL: urls.get("anthropic") ?? "", maxRetries: 0 });
    const messages = [{ role: "user" as const, content: "Where is the zebrafish?" }];
    // Nobody else can write the store until it is released.
    const holder = new DatabaseSync(join(directory.path, "sessions.db"));
    holder.exec("BEGIN IMMEDIATE");
    await client.messages.create({ model: "claude-opus-5", max_tokens: 99, messages });
    const spool = join(directory.path, "spool");
    const [name = ""] = readdirSync(spool).filter((each) => each.endsWith(".call"));
    const content = readFileSync(join(spool, name), "latin1");
    expect([content.startsWith('{"v":2,'), /zebrafish|Hello to you/.test(content)]).toEqual([true, false]);
    holder.exec("ROLLBACK");
    holder.close();
    await expect.poll(() => readdirSync(spool), { timeout: 30_000 }).toEqual([]);
    expect((await runHere(directory.path, ["search", "zebrafish"])).stdout).toContain("zebrafish");
  });

  it.each([
    [{ anthropic: { api: "anthropic", apiKeyEnv: "NO_SUCH_KEY" } }, 2, "The variable NO_SUCH_KEY"],
    [{ anthropic: { api: "anthropic", apiKeyEnv: "BROKEN_KEY" } }, 2, "The variable BROKEN_KEY holds no key"],
    [{ anthropic: { api: "anthropic", apiKeyEnv: "EXAMPLE_KEY", credentials: "caller" } }, 2, "are the caller's"],
    [{ "Not A Name": { api: "ollama" } }, 1, "An upstream cannot be called"],
    [{ metrics: { api: "ollama" } }, 1, "An upstream cannot be called"],
    [{ a: { api: "ollama", baseUrl: "http://user:secret@127.0.0.1" } }, 1, "without credentials and query"],
    [{ a: { api: "ollama", baseUrl: "file:///etc/passwd" } }, 1, "must be an http or https address"],
  ])("refuses %j", async (upstreams, exitCode, why) => {
    configure(upstreams);
    const run = await runHere(directory.path, ["serve", "--port", "0", "--timeout", "20000"], {
      environment: { ...environment, BROKEN_KEY: "key\r\nx-evil: 1" },
    });
    expect([run.code, run.stderr]).toEqual([exitCode, expect.stringContaining(why)]);
    expect(run.stderr).not.toMatch(/secret@|x-evil/);
  });

  it.runIf(isLongRun)(
    "keeps calls in files while the store is locked, and stores them after kill -9",
    async () => {
      configure({ anthropic: { api: "anthropic", baseUrl: simulator.url, apiKeyEnv: "EXAMPLE_KEY" } });
      const apiKey = await tokenOf("gateway:anthropic");
      const baseURL = (await serve()).get("anthropic") ?? "";
      const anthropic = new Anthropic({ apiKey, baseURL, maxRetries: 0, timeout: 60_000 });
      const messages: Anthropic.MessageParam[] = [];
      const ask = async (text: string): Promise<void> => {
        messages.push({ role: "user", content: text });
        const stream = anthropic.messages.stream({ model: "claude-opus-5", max_tokens: 99, messages });
        messages.push({ role: "assistant", content: await stream.finalText() });
      };
      await ask("before");
      await expect.poll(async () => (await json("sessions"))[0]?.["messageCount"]).toBe(2);
      const other = new DatabaseSync(join(directory.path, "sessions.db"));
      other.exec("BEGIN IMMEDIATE");
      for (const text of ["first", "second", "third"]) await ask(text);
      const spool = join(directory.path, "spool");
      await expect.poll(() => readdirSync(spool).length).toBe(3);
      child?.kill("SIGKILL");
      await new Promise((resolve) => child?.once("close", resolve));
      other.exec("ROLLBACK");
      other.close();
      expect(readdirSync(spool)).toHaveLength(3);
      await serve();
      await expect.poll(() => readdirSync(spool)).toEqual([]);
      const [session] = await json("sessions");
      expect(session?.["messageCount"]).toBe(8);
      const calls = (await json("explain", String(session?.["key"]))).filter(({ kind }) => kind === "call");
      expect(calls.map(({ attempt }) => attempt)).toEqual([0, 0, 0, 0]);
    },
    120_000,
  );

  it("keeps the history for a token of the mode stateful, and for no other", { tags: ["slow"] }, async () => {
    const apiKeyEnv = "EXAMPLE_KEY";
    configure({ anthropic: { api: "anthropic", baseUrl: simulator.url, credentials: "server", apiKeyEnv } });
    const scopes = "gateway:anthropic,write";
    const tokens = [await tokenOf(scopes, "--mode", "stateful"), await tokenOf(scopes)];
    const baseURL = (await serve()).get("anthropic") ?? "";
    const sizes: unknown[] = [];
    for (const [at, apiKey] of tokens.entries()) {
      const client = new Anthropic({ apiKey, baseURL, maxRetries: 0 });
      for (const content of ["I am Ada.", "Who am I?"])
        await client.messages.create(
          { model: "claude-opus-5", max_tokens: 99, messages: [{ role: "user", content }] },
          { headers: { "throughline-session": `mode-${at}` } },
        );
      const sent = simulator.requests.at(-1)?.body as { readonly messages: readonly unknown[] } | undefined;
      sizes.push(sent?.messages.length);
    }
    expect(sizes).toEqual([3, 1]);
    const listed = await json("token", "list");
    expect(listed.map(({ mode }) => mode)).toContain("stateful");
    const { code, stderr } = await runHere(directory.path, ["token", "create", "x", "--mode", "sometimes"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("record, guard or stateful")]);
  });

  it("makes tokens for upstreams, and refuses scopes that are none", async () => {
    const [token] = await json("token", "create", "agent", "--scopes", "gateway:anthropic,read,gateway:manage");
    expect(token?.["scopes"]).toEqual(["read", "gateway:anthropic", "gateway:manage"]);
    for (const scope of ["gateway:", "gateway:A", "gateway:a/b", "gateway"])
      expect((await runHere(directory.path, ["token", "create", "agent", "--scopes", scope])).code).toBe(2);
  });
});
