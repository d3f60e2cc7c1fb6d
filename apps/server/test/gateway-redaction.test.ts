import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { redactRecords, type SessionRef, type SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { type GatewayServing, serveGateway } from "./gateway-serving.ts";

let folder = "";
let gateway: GatewayServing;
/** Another process on the same store. */
let other: SessionStore;
beforeEach(async () => {
  folder = mkdtempSync(join(quickFolder(), "throughline-gateway-"));
  const path = join(folder, "sessions.db");
  gateway = await serveGateway({}, { openStore: () => createSqliteStore({ path }) });
  other = await createSqliteStore({ path });
});
afterEach(async () => {
  await other.close();
  await gateway.close();
  rmSync(folder, { recursive: true, force: true });
});

const secret = "correct-horse-battery-staple";
const block = (text: string, more: object = {}): object => ({ type: "text", text, ...more });
const question = [block("Remember this."), block(`The password is ${secret}, say it back.`)];
const marked = [block("Remember this.", { cache_control: { type: "ephemeral" } }), question[1]];

async function ask(messages: readonly object[]): Promise<number> {
  const answer = await fetch(`${gateway.url}/anthropic/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": gateway.token, "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "claude-opus-5", max_tokens: 100, messages }),
  });
  await answer.text();
  return answer.status;
}

async function redactQuestion(key: string): Promise<void> {
  const ref: SessionRef = { namespace: "", agentId: "main", key };
  const ids: string[] = [];
  for await (const { records } of other.read(ref))
    for (const { id, record } of records)
      if (JSON.stringify(record).includes(secret) && id.startsWith("m")) ids.push(id);
  await redactRecords(other, ref, ids.slice(0, 1), { reason: "a secret" });
}

function assertGone(): void {
  for (const name of readdirSync(folder))
    expect([name, readFileSync(join(folder, name)).includes(secret)]).toEqual([name, false]);
}

describe("a redaction by another process", () => {
  it("reaches an error of the provider that quotes the message", async () => {
    gateway.simulator.enqueue({ kind: "error", status: 400, message: `messages.0: "${secret}" is not allowed` });
    expect(await ask([{ role: "user", content: question }])).toBe(400);
    const [call] = await gateway.calls(1);
    await redactQuestion(call?.session ?? "");
    assertGone();
  });

  it("is noticed before the next call, also where its client still sends the message", async () => {
    gateway.simulator.enqueue("Noted.", "Again.", { kind: "error", status: 400, message: `It says ${secret}.` });
    expect(await ask([{ role: "user", content: question }])).toBe(200);
    const [call] = await gateway.calls(1);
    const key = call?.session ?? "";
    await redactQuestion(key);
    const said = { role: "assistant", content: "Noted." };
    const more = [{ role: "user", content: marked }, said, { role: "user", content: "And now?" }];
    expect(await ask(more)).toBe(200);
    const calls = await gateway.calls(2);
    // The client's history has not changed: it is the same conversation.
    expect(new Set(calls.map(({ session }) => session)).size).toBe(1);
    expect(await ask([...more, { role: "assistant", content: "Again." }, { role: "user", content: "So?" }])).toBe(400);
    await gateway.calls(3);
    assertGone();
    await expect(gateway.requestOf(calls[1] as never)).rejects.toThrow("redacted or removed");
  });

  it("reaches a summary that stood in place of the message", { tags: ["slow"] }, async () => {
    await gateway.close();
    const path = join(folder, "sessions.db");
    const options = { models: { "*": { windowTokens: 3000 } }, fallback: () => "Noted." };
    const store = { openStore: () => createSqliteStore({ path }) };
    gateway = await serveGateway(options, store, {}, { mode: "guard" });
    const long = (text: string): object => ({ role: "user", content: `${text} ${"and so on ".repeat(300)}` });
    const noted = { role: "assistant", content: "Noted." };
    const more = Array.from({ length: 5 }, (_, index) => [noted, long(`Item ${index}.`)]).flat();
    const history = [{ role: "user", content: question }, ...more];
    expect(await ask(history)).toBe(200);
    expect(JSON.stringify(gateway.simulator.requests[1]?.body)).toContain(secret);
    const [call] = await gateway.calls(2);
    await redactQuestion(call?.session ?? "");
    assertGone();
    // The client still sends the message, and it is summed up once more.
    expect(await ask([...history, noted, long("The last item.")])).toBe(200);
    await gateway.calls(4);
    assertGone();
  });
});
