import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { type GatewayServing, serveGateway, sha256 } from "./gateway-serving.ts";
import { createLeavingStore, type LeavingStore } from "./leaving-store.ts";

let folder = "";
let leaving: LeavingStore;
let inner: SessionStore;
let gateway: GatewayServing | null = null;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "throughline-spool-")), "spool");
  history = [];
  inner = createMemoryStore();
  leaving = createLeavingStore(inner);
});
afterEach(async () => {
  leaving.comeBack();
  await gateway?.close();
  gateway = null;
  rmSync(join(folder, ".."), { recursive: true, force: true });
});

type Down = { readonly onStoreDown?: "spool" | "refuse" | "pass"; readonly spoolBytes?: number };

async function start(down: Down = {}): Promise<GatewayServing> {
  // The store outlives the server, as a database does.
  const store = new Proxy(leaving.store, {
    get: (target, name): unknown => (name === "close" ? async () => {} : Reflect.get(target, name)),
  });
  gateway = await serveGateway(
    { fallback: ({ body }) => `Said ${JSON.stringify(body).length}.` },
    { openStore: () => store },
    { spoolFolder: folder, ...down },
  );
  return gateway;
}

let history: Anthropic.MessageParam[] = [];

/** Whether this user may mount a small disk. */
const canMount = ((): boolean => {
  const place = mkdtempSync(join(tmpdir(), "throughline-mount-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", place], { stdio: "ignore" });
    execFileSync("umount", [place]);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(place, { recursive: true });
  }
})();

/** Of somebody else. */
function tokenOf({ serving }: GatewayServing): Promise<string> {
  return serving.tokenOf({ namespace: "", scopes: ["gateway:anthropic"] });
}

/** Says more in one conversation. */
const ask = async ({ url, token }: GatewayServing, text: string): Promise<string> => {
  history.push({ role: "user", content: text });
  const client = new Anthropic({ apiKey: token, baseURL: `${url}/anthropic`, maxRetries: 0 });
  const stream = client.messages.stream(
    { model: "claude-opus-5", max_tokens: 99, messages: history },
    { headers: { "throughline-session": "one", cookie: "a=cookie-of-the-client" } },
  );
  const said = await stream.finalText();
  history.push({ role: "assistant", content: said });
  return said;
};
const files = (): readonly string[] => (existsSync(folder) ? readdirSync(folder) : []);
const metricsOf = async ({ serving }: GatewayServing): Promise<string> =>
  (await fetch(`${serving.url}/metrics`, { headers: { authorization: `Bearer ${serving.token}` } })).text();
const readiness = async ({ url }: GatewayServing): Promise<string> => (await fetch(`${url}/readyz`)).text();

/** Every request that the provider got is in the log once, and is given back byte for byte. */
async function assertKept(serving: GatewayServing, count: number): Promise<void> {
  const calls = await serving.calls(count);
  expect(calls).toHaveLength(count);
  const rebuilt = await Promise.all(calls.map(async (call) => sha256(await serving.requestOf(call))));
  const sent = serving.simulator.requests.map(({ bytes }) => sha256(bytes));
  expect(rebuilt.toSorted()).toEqual(sent.slice(-count).toSorted());
}

describe("spool", () => {
  it.each(["fails", "hangs", "forgets"] as const)(
    "keeps calls while the store %s, and stores each once",
    { tags: ["slow"] },
    async (how) => {
      const serving = await start();
      await ask(serving, "before");
      await serving.calls(1);
      leaving.leave(how);
      for (const text of ["first", "second", "third"]) expect(await ask(serving, text)).toMatch(/^Said/);
      // What was done although it says it was not is found in the log, and its file goes at once.
      if (how !== "forgets") await expect.poll(files).toHaveLength(3);
      expect(statSync(folder).mode & 0o777).toBe(0o700);
      for (const name of files()) {
        expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
        expect(readFileSync(join(folder, name), "utf8")).not.toMatch(/tl_[a-z0-9]{12}_|provider-key|cookie-of/);
      }
      expect(await metricsOf(serving)).toMatch(
        how === "forgets" ? /spool_bytes/ : /^throughline_gateway_spool_bytes [1-9]/m,
      );

      leaving.comeBack();
      await expect.poll(files).toEqual([]);
      await assertKept(serving, 4);
      await expect.poll(() => readiness(serving)).toBe("ready\n");
      const order: string[] = [];
      for (const { session } of (await serving.calls(4)).slice(0, 1))
        for await (const { records } of inner.read({ namespace: "", agentId: "main", key: session }))
          for (const { record } of records) {
            const { role, content } = (record["message"] ?? {}) as { role?: string; content?: unknown };
            if (role === "user") order.push(JSON.stringify(content).replace(/.*?(before|first|second|third).*/, "$1"));
          }
      expect(order).toEqual(["before", "first", "second", "third"]);
      await ask(serving, "after");
      await assertKept(serving, 5);
      expect(await metricsOf(serving)).not.toMatch(/unrecorded_total\{/);
    },
  );

  it("holds a call while another turn is open in its session, and the server says so", { tags: ["slow"] }, async () => {
    const serving = await start();
    await ask(serving, "before");
    const [call] = await serving.calls(1);
    const path = `/sessions/${call?.session}/turns`;
    const { body } = await serving.serving.ask("POST", path, { body: { owner: "another", leaseMs: 60_000 } });
    await ask(serving, "between");
    await expect.poll(() => readiness(serving)).toBe("degraded\n");
    expect(files()).toHaveLength(1);
    // Whoever has calls in other sessions does not notice.
    const held = history;
    history = [];
    const other = await ask({ ...serving, token: await tokenOf(serving) }, "elsewhere");
    expect(other).toMatch(/^Said /);
    await serving.calls(2);
    await expect.poll(files).toHaveLength(1);
    expect(await readiness(serving)).toBe("degraded\n");
    history = held;
    const closed = await serving.serving.ask("POST", `${path}/${String(body["fence"])}/close`, { body: {} });
    expect(closed.status).toBe(200);
    await expect.poll(() => readiness(serving)).toBe("ready\n");
    await serving.calls(3);
    expect(files()).toEqual([]);
  });

  it("is stored by the next process, and a file that is not whole is put aside", { tags: ["slow"] }, async () => {
    const first = await start();
    leaving.leave("fails");
    for (const text of ["first", "second", "third"]) await ask(first, text);
    await expect.poll(files).toHaveLength(3);
    await first.serving.server.close();
    const [broken = ""] = files().toSorted();
    truncateSync(join(folder, broken), 700);
    writeFileSync(join(folder, "000-half.call.tmp"), "half");
    leaving.comeBack();
    const next = await start();
    await expect.poll(files).toEqual([`${broken}.failed`]);
    const keys = (await inner.list({ namespace: "" })).sessions.map(({ ref }) => ref);
    const said: unknown[] = [];
    for await (const { records } of inner.read(keys[0] as never))
      for (const { record } of records) if (record.type === "message") said.push((record["message"] as never)["role"]);
    // The next call brings the history that the broken file had.
    expect(said).toEqual(["user", "assistant", "user", "assistant", "user", "assistant"]);
    expect(await metricsOf(next)).toContain('throughline_gateway_unrecorded_total{reason="spool-failed"} 1');
  });

  it("takes no call that has no room in the files, and loses none that it took", { tags: ["slow"] }, async () => {
    const serving = await start({ spoolBytes: 100_000 });
    leaving.leave("fails");
    const taken = await askUntilRefused(serving);
    expect(taken).toBeGreaterThan(0);
    expect([files().length, serving.simulator.requests.length]).toEqual([taken, taken]);
    expect(await readiness(serving)).not.toBe("ready\n");
    expect(await metricsOf(serving)).not.toMatch(/unrecorded_total\{/);
    leaving.comeBack();
    await expect.poll(files).toEqual([]);
    expect(await ask(serving, "after")).toMatch(/^Said/);
    await assertKept(serving, taken + 1);
    await expect.poll(() => readiness(serving)).toBe("ready\n");
  });

  it("takes a call where the files cannot be written only if the store has it", async () => {
    const serving = await start();
    rmSync(folder, { recursive: true });
    expect(await ask(serving, "first")).toMatch(/^Said/);
    expect([(await serving.calls(1)).length, await readiness(serving)]).toEqual([1, "degraded\n"]);
    leaving.leave("fails");
    await expect(ask(serving, "second")).rejects.toMatchObject({ status: 503 });
    expect(serving.simulator.requests).toHaveLength(1);
    expect(await metricsOf(serving)).not.toMatch(/unrecorded_total\{/);
  });

  it.skipIf(!canMount)("takes no call on a full disk, and stores what it took later", { tags: ["slow"] }, async () => {
    mkdirSync(folder, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", folder]);
    try {
      const serving = await start();
      await ask(serving, "before");
      await serving.calls(1);
      writeFileSync(join(folder, "of-others"), Buffer.alloc(1_800_000));
      leaving.leave("fails");
      const taken = await askUntilRefused(serving);
      expect(files().filter((name) => name.endsWith(".call"))).toHaveLength(taken);
      expect(serving.simulator.requests).toHaveLength(taken + 1);
      leaving.comeBack();
      await expect.poll(files).toEqual(["of-others"]);
      await assertKept(serving, taken + 1);
      writeFileSync(join(folder, "of-others"), Buffer.alloc(2 * 1024 * 1024));
      // With the store, calls pass on a full disk.
      expect(await ask(serving, "with a full disk")).toMatch(/^Said/);
      leaving.leave("fails");
      await expect(ask(serving, "without the store")).rejects.toMatchObject({ status: 503 });
      history.pop();
      leaving.comeBack();
      expect(await ask(serving, "with the store again")).toMatch(/^Said/);
      await assertKept(serving, taken + 3);
      expect(await metricsOf(serving)).not.toMatch(/unrecorded_total\{/);
    } finally {
      await gateway?.close();
      gateway = null;
      execFileSync("umount", [folder]);
    }
  });

  it("breaks an answer off where its call turns out to have no room", async () => {
    const serving = await start({ spoolBytes: 100_000 });
    leaving.leave("fails");
    await ask(serving, "first");
    // The server holds answers back as soon as that call waits.
    const askLong = async (): Promise<string> => {
      serving.simulator.enqueue({ kind: "answer", content: [{ type: "text", text: "x".repeat(150_000) }] });
      const answer = await fetch(`${serving.url}/ollama/api/chat`, {
        method: "POST",
        headers: { authorization: `Bearer ${serving.token}` },
        body: '{"model":"m","stream":false,"messages":[{"role":"user","content":"Hi"}]}',
      });
      return answer.text().catch(() => "broken off");
    };
    await expect.poll(askLong).toBe("broken off");
    expect(await metricsOf(serving)).toMatch(/unrecorded_total\{reason="spool"\} [1-9]/);
  });
});

/** Asks until a call is refused, and gives how many were answered. */
async function askUntilRefused(serving: GatewayServing): Promise<number> {
  for (let taken = 0; ; taken++)
    try {
      await ask(serving, `${taken} ${"x".repeat(10_000)}`);
      await expect.poll(() => files().filter((name) => name.endsWith(".call")).length).toBe(taken + 1);
    } catch (error) {
      expect(error).toMatchObject({ status: 503 });
      history.pop();
      return taken;
    }
}

describe("refuse", () => {
  it.each([
    [
      "anthropic/v1/messages",
      { messages: [{ role: "user", content: "Hi" }] },
      { type: "error", error: { type: "api_error" } },
    ],
    [
      "openai/v1/chat/completions",
      { messages: [{ role: "user", content: "Hi" }] },
      { error: { type: "server_error" } },
    ],
    ["ollama/api/chat", { messages: [{ role: "user", content: "Hi" }] }, { error: expect.any(String) }],
  ])("answers 503 before the upstream is asked at %s", async (path, body, shape) => {
    const { url, token, simulator } = await start({ onStoreDown: "refuse" });
    leaving.leave("fails");
    const answer = await fetch(`${url}/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "m", ...body }),
    });
    expect([answer.status, answer.headers.get("throughline-error")]).toEqual([503, "STORE_UNREACHABLE"]);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(await answer.json()).toMatchObject(shape);
    expect(simulator.requests).toEqual([]);
    expect(files()).toEqual([]);
  });

  it("ends an answer only once the call is stored", { tags: ["slow"] }, async () => {
    const serving = await start({ onStoreDown: "refuse" });
    for (const text of ["first", "second"]) {
      await ask(serving, text);
      // Nothing is waited for: what the client has seen the end of is there.
      const ref = {
        namespace: "",
        agentId: "main",
        key: (await inner.list({ namespace: "" })).sessions[0]?.ref.key ?? "",
      };
      let replies = 0;
      for await (const { records } of inner.read(ref))
        for (const { record } of records) if (JSON.stringify(record).includes('"role":"assistant"')) replies += 1;
      expect(replies).toBe(text === "first" ? 1 : 2);
    }
    const { url, token, simulator } = serving;
    for (const stream of [true, false]) {
      simulator.enqueue({ kind: "answer", content: "A longer answer.", eventDelayMs: stream ? 30 : 0, delayMs: 100 });
      const answering = fetch(`${url}/anthropic/v1/messages`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "anthropic-version": "2023-06-01" },
        body: JSON.stringify({
          model: "claude-opus-5",
          max_tokens: 9,
          stream,
          messages: [{ role: "user", content: "Hi" }],
        }),
      });
      await expect.poll(() => simulator.requests.length).toBe(stream ? 3 : 4);
      leaving.leave("fails");
      const answer = await answering;
      await expect(answer.text()).rejects.toThrow("terminated");
      leaving.comeBack();
    }
  });
});

it("forgets a call that was refused while the store did not answer", { tags: ["slow"] }, async () => {
  const { url, token, serving, calls } = await start({ onStoreDown: "refuse" });
  const headers = {
    authorization: `Bearer ${token}`,
    "throughline-session": "one",
    "anthropic-version": "2023-06-01",
  };
  const send = async (): Promise<number> =>
    (
      await fetch(`${url}/anthropic/v1/messages`, {
        method: "POST",
        headers,
        body: JSON.stringify({ model: "claude-opus-5", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] }),
      })
    ).status;
  expect(await send()).toBe(200);
  leaving.leave("hangs");
  expect(await send()).toBe(503);
  leaving.comeBack();
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await send()).toBe(200);
  const asked = (await calls(2)).map(({ callId, turnId, attempt }) => [callId === turnId, attempt]);
  expect(asked).toEqual([
    [true, 0],
    [true, 0],
  ]);
  expect(serving.log()).not.toContain("could not be stored");
});

describe("pass", () => {
  it("ends with the server although a turn is open in the session of a call", { tags: ["slow"] }, async () => {
    const serving = await start({ onStoreDown: "pass" });
    await ask(serving, "before");
    const [call] = await serving.calls(1);
    await serving.serving.ask("POST", `/sessions/${call?.session}/turns`, {
      body: { owner: "another", leaseMs: 600_000 },
    });
    await ask(serving, "between");
    const beganMs = performance.now();
    await serving.serving.server.close();
    expect(performance.now() - beganMs).toBeLessThan(15_000);
    expect(serving.serving.log()).toContain("could not be stored");
  });

  it("passes calls on without a record, and counts them", async () => {
    const serving = await start({ onStoreDown: "pass" });
    leaving.leave("fails");
    expect(await ask(serving, "first")).toMatch(/^Said/);
    await expect.poll(() => metricsOf(serving)).toContain('throughline_gateway_unrecorded_total{reason="store"} 1');
    expect(files()).toEqual([]);
    leaving.comeBack();
    // The client's next request has the whole history.
    await ask(serving, "first");
    expect(await serving.calls(1)).toHaveLength(1);
  });
});
