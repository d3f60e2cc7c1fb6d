import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";

vi.setConfig({ testTimeout: 240_000 });
const program = bundledWorker(new URL("../src/main.ts", import.meta.url));
const words = Array.from({ length: 300 }, (_, at) => `word${at} `).join("");
let folder: string;
let simulator: ProviderSimulator;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "throughline-reattach-"));
  simulator = createProviderSimulator();
  await simulator.start();
});
afterEach(async () => {
  await simulator.close();
  rmSync(folder, { recursive: true, force: true });
});

type Child = ChildProcessByStdio<null, Readable, Readable>;

function start(providerUrl: string, ...args: readonly string[]): Child {
  return spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env: { ...process.env, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: providerUrl },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function end(child: Child): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const ended = once(child, "exit") as Promise<[number | null]>;
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}

/** The provider, whose answer stops in the middle until it is told to go on. */
async function heldProvider(): Promise<{ readonly url: string; release(): void } & AsyncDisposable> {
  const held = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    const headers = { "content-type": "application/json", "x-api-key": "sk-test", "anthropic-version": "2023-06-01" };
    const { method = "", url = "" } = request;
    const body = method === "POST" ? { body: await buffer(request) } : {};
    const answer = await fetch(`${simulator.url}${url}`, { method, headers, ...body });
    const events = await answer.text();
    const middle = url === "/v1/messages" ? events.indexOf("\n\n", events.length / 2) + 2 : events.length;
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    response.write(events.slice(0, middle));
    if (middle < events.length) await held.promise;
    response.end(events.slice(middle));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    release: () => held.resolve(),
    [Symbol.asyncDispose]: async () => {
      held.resolve();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe("the example of reattaching", () => {
  it("shows the text so far and the rest in another process, each word once", async () => {
    await using provider = await heldProvider();
    simulator.enqueue({ kind: "answer", content: words });
    const asking = start(provider.url, "ask", "Tell me.");
    const asked = end(asking);
    await once(asking.stdout, "data");
    const watching = start(provider.url, "watch");
    const watched = end(watching);
    await once(watching.stdout, "data");
    provider.release();
    expect(await watched).toEqual({ code: 0, stdout: `${words}\n`, stderr: "" });
    expect(await asked).toEqual({ code: 0, stdout: `${words}\n`, stderr: "" });
    expect(await end(start(provider.url, "watch"))).toMatchObject({ code: 3, stdout: "" });
    expect(simulator.refusals).toEqual([]);
  });

  it("ends when the process that answers is killed, with what it wrote", async () => {
    await using provider = await heldProvider();
    simulator.enqueue({ kind: "answer", content: words });
    const asking = start(provider.url, "ask", "Tell me.");
    await once(asking.stdout, "data");
    const watching = start(provider.url, "watch");
    const watched = end(watching);
    await once(watching.stdout, "data");
    asking.kill("SIGKILL");
    const { code, stdout } = await watched;
    expect(code).toBe(4);
    expect(stdout.trimEnd().length).toBeGreaterThan(0);
    expect(words.startsWith(stdout.trimEnd())).toBe(true);
  });

  it("says how it is called", async () => {
    expect(await end(start(simulator.url, "ask"))).toMatchObject({ code: 2, stdout: "" });
  });
});
