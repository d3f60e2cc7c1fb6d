import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SimulatedReply } from "@throughline/testing";
import { type GatewayServing, serveGateway } from "./gateway-serving.ts";

let gateway: GatewayServing;
beforeAll(async () => {
  gateway = await serveGateway({ fallback: () => "A whole answer." });
});
afterAll(() => gateway.close());

let count = 0;
const nextSession = (): string => `retry-${++count}`;

async function logOf(
  session: string,
  calls: number,
): Promise<{ readonly roles: readonly unknown[]; readonly calls: readonly unknown[] }> {
  const key = `agent:main:gateway:direct:${/tl_([a-z0-9]+)_/.exec(gateway.token)?.[1]}-${session}`;
  const found = async (): Promise<readonly Readonly<Record<string, unknown>>[]> =>
    ((await gateway.serving.ask("GET", `/sessions/${key}/records?limit=500`)).body["items"] ?? []) as readonly Readonly<
      Record<string, unknown>
    >[];
  const exchanges = async (): Promise<readonly Readonly<Record<string, unknown>>[]> =>
    (await found())
      .map(({ record }) => record as Readonly<Record<string, unknown>>)
      .filter(({ customType }) => customType === "throughline.exchange");
  await expect.poll(async () => (await exchanges()).length).toBe(calls);
  // What is usual is left out.
  const data = (await exchanges()).map((exchange) => ({
    callId: String(exchange["id"]).replace(/^x-/, ""),
    attempt: 0,
    ...(exchange["data"] as Readonly<Record<string, unknown>>),
  }));
  const ids = [...new Set(data.map(({ callId }) => callId))];
  return {
    roles: (await found()).flatMap(({ record }) => {
      const { message } = record as { readonly message?: { readonly role: string } };
      return message === undefined ? [] : [message.role];
    }),
    calls: data.map(({ callId, attempt, outcome }: Readonly<Record<string, unknown>>) => [
      ids.indexOf(String(callId)),
      attempt,
      outcome,
    ]),
  };
}

const error = (status: number): SimulatedReply => ({ kind: "error", status, retryAfterMs: 10 });

describe("the same request again", () => {
  it.each([
    ["Anthropic", 529],
    ["OpenAI", 500],
  ])("is one call with three attempts where the SDK of %s meets %i twice", async (sdk, status) => {
    const session = nextSession();
    const headers = { "throughline-session": session };
    gateway.simulator.enqueue(error(status), error(status));
    const messages = [{ role: "user" as const, content: "Hello" }];
    const own = { apiKey: gateway.token, maxRetries: 2, defaultHeaders: headers };
    if (sdk === "Anthropic")
      await new Anthropic({ ...own, baseURL: `${gateway.url}/anthropic` }).messages.create({
        model: "claude-opus-5",
        max_tokens: 9,
        messages,
      });
    else
      await new OpenAI({ ...own, baseURL: `${gateway.url}/openai/v1` }).chat.completions.create({
        model: "gpt-5",
        messages,
      });
    expect(await logOf(session, 3)).toEqual({
      roles: ["user", "assistant"],
      calls: [
        [0, 0, "failed"],
        [0, 1, "failed"],
        [0, 2, "answered"],
      ],
    });
  });

  it.each([1, 3, 4, 5])("goes on after a stream that broke off behind %i events", async (events) => {
    const session = nextSession();
    const content = "An answer that takes some events to be said.";
    gateway.simulator.enqueue({ kind: "answer", content, breakAfter: { events, how: "cut" } });
    const send = (): Promise<string> =>
      fetch(`${gateway.url}/anthropic/v1/messages`, {
        method: "POST",
        headers: { "x-api-key": gateway.token, "throughline-session": session, "anthropic-version": "2023-06-01" },
        body: JSON.stringify({
          model: "claude-opus-5",
          max_tokens: 9,
          stream: true,
          messages: [{ role: "user", content: "Go" }],
        }),
      }).then(async (answer) => answer.text());
    await expect(send()).rejects.toThrow("terminated");
    await logOf(session, 1);
    expect(await send()).toContain("message_stop");
    const { roles, calls } = await logOf(session, 2);
    expect(calls).toEqual([
      [0, 0, "partial"],
      [0, 1, "answered"],
    ]);
    // What came before the break is kept as well, where anything was said.
    expect(["user,assistant", "user,assistant,assistant"]).toContain(roles.join());
  });

  it("is a call of its own once it was answered", async () => {
    const session = nextSession();
    const anthropic = new Anthropic({
      apiKey: gateway.token,
      baseURL: `${gateway.url}/anthropic`,
      defaultHeaders: { "throughline-session": session },
    });
    gateway.simulator.enqueue("One.", "Two.");
    for (let time = 1; time <= 2; time++) {
      await anthropic.messages.create({
        model: "claude-opus-5",
        max_tokens: 9,
        messages: [{ role: "user", content: "Go" }],
      });
      await logOf(session, time);
    }
    expect(await logOf(session, 2)).toEqual({
      roles: ["user", "assistant", "assistant"],
      calls: [
        [0, 0, "answered"],
        [1, 0, "answered"],
      ],
    });
  });
});
