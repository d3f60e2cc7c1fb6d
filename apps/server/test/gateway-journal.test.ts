import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hasErrorCode, type SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { type GatewayServing, serveGateway } from "./gateway-serving.ts";
import { createLeavingStore, type LeavingStore } from "./leaving-store.ts";
import { type RawServing, serveRaw } from "./raw-upstream.ts";

let folder = "";
let inner: SessionStore;
let leaving: LeavingStore;
const gateways: GatewayServing[] = [];
const raws: RawServing[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "throughline-journal-"));
  inner = createMemoryStore();
  leaving = createLeavingStore(inner);
});
afterEach(async () => {
  leaving.comeBack();
  for (const one of [...gateways.splice(0), ...raws.splice(0)]) await one.close();
  rmSync(folder, { recursive: true, force: true });
});

async function start(
  store: SessionStore,
  spoolFolder: string,
  onStoreDown: "spool" | "pass" | "refuse" = "spool",
): Promise<GatewayServing> {
  const gateway = await serveGateway(
    { fallback: () => "It is noted." },
    { openStore: () => store },
    { spoolFolder, onStoreDown },
  );
  gateways.push(gateway);
  return gateway;
}

const files = (name = "spool"): readonly string[] => {
  const path = join(folder, name);
  return existsSync(path) ? readdirSync(path).toSorted() : [];
};

async function ask({ url }: GatewayServing, token: string): Promise<string> {
  const answer = await fetch(`${url}/anthropic/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": token, "anthropic-version": "2023-06-01", cookie: "a=cookie-of-the-client" },
    body: JSON.stringify({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "Note this." }] }),
  });
  return answer.text();
}

describe.each(["spool", "pass"] as const)("the journal, with onStoreDown %s", (onStoreDown) => {
  it("has a call when its client hears the end, and the next process stores it", async () => {
    const serving = await start(leaving.store, join(folder, "spool"), onStoreDown);
    leaving.leave("hangs");
    expect(await ask(serving, serving.token)).toContain("It is noted.");
    const [name = "", ...others] = files();
    expect([name, others]).toEqual([expect.stringMatching(/\.call$/), []]);
    const path = join(folder, "spool", name);
    expect([statSync(join(folder, "spool")).mode & 0o777, statSync(path).mode & 0o777]).toEqual([0o700, 0o600]);
    const text = readFileSync(path, "utf8");
    expect([text.includes("Note this."), text.includes("It is noted.")]).toEqual([true, true]);
    expect(text).not.toMatch(/tl_[a-z0-9]{12}_|provider-key|cookie-of/);

    // What a killed process leaves is the folder as it is now.
    cpSync(join(folder, "spool"), join(folder, "left"), { recursive: true });
    const next = await start(createMemoryStore(), join(folder, "left"), onStoreDown);
    const token = await next.serving.tokenOf({ namespace: "", scopes: ["read"] });
    expect(await next.calls(1)).toMatchObject([{ outcome: "answered" }]);
    const { body } = await next.serving.ask("GET", "/sessions", { token });
    expect(body["count"]).toBe(1);
    await expect.poll(() => files("left")).toEqual([]);
  });
});

it("keeps the name that the client heard for a session that the next process begins", async () => {
  const serving = await start(leaving.store, join(folder, "spool"));
  leaving.leave("hangs");
  const answer = await fetch(`${serving.url}/anthropic/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": serving.token, "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "Note this." }] }),
  });
  await answer.text();
  cpSync(join(folder, "spool"), join(folder, "left"), { recursive: true });
  const next = await start(createMemoryStore(), join(folder, "left"));
  const [call] = await next.calls(1);
  expect(answer.headers.get("throughline-session")).toBe(call?.session);
});

it("stores a call once, beside the attempt that it repeats, although its file was left", async () => {
  const first = await start(leaving.store, join(folder, "spool"));
  first.simulator.enqueue({ kind: "error", status: 500 });
  await ask(first, first.token);
  const [failed] = await first.calls(1);
  // Another process knows nothing of that attempt, and is killed when it has stored the repeat.
  const second = await start(leaving.store, join(folder, "second"));
  leaving.leave("hangs");
  await ask(second, first.token);
  cpSync(join(folder, "second"), join(folder, "left"), { recursive: true });
  leaving.comeBack();
  await second.calls(2);
  const third = await start(inner, join(folder, "left"));
  await expect.poll(() => files("left")).toEqual([]);
  const calls = await third.calls(2);
  expect(calls.map(({ session, outcome }) => [session, outcome])).toEqual([
    [failed?.session, "failed"],
    [failed?.session, "answered"],
  ]);
});

it("is empty when the store has the calls, and the server says how far it is behind", async () => {
  const serving = await start(leaving.store, join(folder, "spool"));
  const readiness = async (): Promise<readonly unknown[]> => {
    const answer = await fetch(`${serving.url}/readyz`);
    const headers = ["throughline-unstored-calls", "throughline-oldest-unstored-ms"];
    return [await answer.text(), ...headers.map((name) => Number(answer.headers.get(name)))];
  };
  await ask(serving, serving.token);
  await expect.poll(() => files()).toEqual([]);
  expect(await readiness()).toEqual(["ready\n", 0, 0]);
  leaving.leave("fails");
  await ask(serving, serving.token);
  await ask(serving, serving.token);
  await expect.poll(readiness).toEqual(["degraded\n", 2, expect.any(Number)]);
  const metrics = await fetch(`${serving.url}/metrics`, {
    headers: { authorization: `Bearer ${serving.serving.token}` },
  });
  expect(await metrics.text()).toMatch(
    /^throughline_gateway_unstored_calls 2\n[^]*^throughline_gateway_oldest_unstored_seconds 0\.\d*[1-9]/m,
  );
  leaving.comeBack();
  await expect.poll(readiness).toEqual(["ready\n", 0, 0]);
});

it("drops calls that could not be stored after 30 days", async () => {
  const daysAgo = (days: number): string => String(Date.now() - days * 24 * 3_600_000).padStart(15, "0");
  const [old, young] = [31, 29].map((days) => `${daysAgo(days)}-000000000-call-x.call.failed`);
  await start(createMemoryStore(), join(folder, "spool")).then((first) => first.close());
  gateways.splice(0);
  for (const name of [old, young]) writeFileSync(join(folder, "spool", name ?? ""), "{}");
  await start(createMemoryStore(), join(folder, "spool"));
  await expect.poll(() => files()).toEqual([young]);
});

it("does not keep the end from a client whose provider leaves the connection open", async () => {
  const raw = await serveRaw({}, { gateway: { spoolFolder: join(folder, "spool") } });
  raws.push(raw);
  const events = [
    {
      type: "message_start",
      message: { id: "m", type: "message", role: "assistant", model: "m", content: [], usage: {} },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Well." } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
  raw.answerWith(({ socket }) => void socket.write(head + events.join("")));
  const answer = await fetch(`${raw.serving.url}/own/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": raw.token, "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "m", max_tokens: 9, stream: true, messages: [{ role: "user", content: "Hello" }] }),
  });
  let text = "";
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes("event: message_stop")) break;
  }
  await expect.poll(() => raw.outcomes()).toEqual(["answered"]);
});

it("refuses no call without a journal while a short turn is open in its session", { tags: ["slow"] }, async () => {
  let refusals = 0;
  const store = new Proxy(inner, {
    get(target, name): unknown {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      if (name !== "append") return member.bind(target) as unknown;
      return async (...given: Parameters<SessionStore["append"]>) =>
        target.append(...given).catch((error: unknown) => {
          if (hasErrorCode(error, "SESSION_BUSY")) refusals += 1;
          throw error;
        });
    },
  });
  const serving = await start(store, join(folder, "spool"), "refuse");
  await ask(serving, serving.token);
  const [call] = await serving.calls(1);
  const path = `/sessions/${call?.session}/turns`;
  const { body } = await serving.serving.ask("POST", path, { body: { owner: "another", leaseMs: 60_000 } });
  const history = [
    { role: "user", content: "Note this." },
    { role: "assistant", content: "It is noted." },
  ];
  const answering = fetch(`${serving.url}/anthropic/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": serving.token, "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "m", max_tokens: 9, messages: [...history, { role: "user", content: "And now?" }] }),
  });
  await expect.poll(() => refusals).toBeGreaterThan(0);
  expect(serving.simulator.requests).toHaveLength(1);
  await serving.serving.ask("POST", `${path}/${String(body["fence"])}/close`, { body: {} });
  expect((await answering).status).toBe(200);
});
