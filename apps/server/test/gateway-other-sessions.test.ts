import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GatewayMode } from "@throughline/server";
import { type GatewayServing, serveGateway } from "./gateway-serving.ts";

let gateway: GatewayServing;
beforeEach(async () => {
  gateway = await serveGateway({ fallback: () => "Well." });
});
afterEach(() => gateway.close());

type Scope = "read" | "write";

async function tokenOf(mode: GatewayMode, scopes: readonly Scope[]): Promise<string> {
  const all = [...scopes, "gateway:anthropic", "gateway:openai"] as const;
  return gateway.serving.tokenOf({ namespace: "", mode, scopes: all });
}

async function ask(token: string, path: string, body: object, session?: string): Promise<Response> {
  const answer = await fetch(`${gateway.url}/${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "anthropic-version": "2023-06-01",
      ...(session === undefined ? {} : { "throughline-session": session }),
    },
    body: JSON.stringify(body),
  });
  return answer;
}

const question = (content: string): object => ({
  model: "claude-opus-5",
  max_tokens: 9,
  messages: [{ role: "user", content }],
});

describe("a session of another token", () => {
  it.each(["stateful", "guard", "record"] as const)("is named in %s mode by a token that may", async (mode) => {
    const owner = await tokenOf("stateful", ["read"]);
    const first = await ask(owner, "anthropic/v1/messages", question("secret"), "home");
    await first.text();
    const key = first.headers.get("throughline-session") ?? "";
    const named = async (scopes: readonly Scope[]): Promise<readonly unknown[]> => {
      const token = await tokenOf(mode, scopes);
      const answer = await ask(token, "anthropic/v1/messages", question(`two ${scopes.join()}`), key);
      return [answer.status, /no scope \\"(\w+)\\"/.exec(await answer.text())?.[1]];
    };
    expect(await named([])).toEqual([403, "write"]);
    expect(await named(["read"])).toEqual([403, "write"]);
    expect(await named(["write"])).toEqual(mode === "record" ? [200, undefined] : [403, "read"]);
    expect(await named(["read", "write"])).toEqual([200, undefined]);
    const sent = gateway.simulator.requests.map(({ body }) => JSON.stringify(body));
    expect(sent.filter((text) => text.includes("two write"))).toHaveLength(mode === "record" ? 1 : 0);
  });

  it("is named by a conversation as by the header", async () => {
    const owner = await tokenOf("stateful", ["read"]);
    const first = await ask(owner, "openai/v1/responses", { model: "gpt-5", input: "secret" }, "home");
    await first.text();
    const conversation = first.headers.get("throughline-session") ?? "";
    const writer = await tokenOf("stateful", ["write"]);
    for (const named of [conversation, { id: conversation }]) {
      const answer = await ask(writer, "openai/v1/responses", { model: "gpt-5", input: "two", conversation: named });
      expect([answer.status, gateway.simulator.requests.length]).toEqual([403, 1]);
    }
  });
});
