import { afterEach, describe, expect, it } from "vitest";
import type { Summarizer } from "@throughline/core";
import type { GatewayMode } from "@throughline/server";
import { type GatewayServing, serveGateway, sha256 } from "./gateway-serving.ts";

let gateway: GatewayServing | null = null;
afterEach(async () => {
  await gateway?.close();
  gateway = null;
});

async function start(mode: GatewayMode, summarizers: readonly Summarizer[] = []): Promise<GatewayServing> {
  const models = { "*": { windowTokens: 4000, maxOutputTokens: 1000 } };
  gateway = await serveGateway(
    { models, fallback: () => "It fits now." },
    { summaries: { summarizers } },
    {},
    { mode },
  );
  return gateway;
}

/** Sends a body as it is; the answer with its bytes. */
async function post(
  at: GatewayServing,
  path: string,
  body: unknown,
  more: Readonly<Record<string, string>>,
): Promise<{ answer: Response; text: string }> {
  const answer = await fetch(`${at.url}/${path}`, {
    method: "POST",
    headers: {
      "x-api-key": at.token,
      authorization: `Bearer ${at.token}`,
      "anthropic-version": "2023-06-01",
      ...more,
    },
    body: JSON.stringify(body),
  });
  return { answer, text: await answer.text() };
}

const long = (index: number): string => `line ${index} of a long file\n`.repeat(150);
const question = { role: "user", content: "What did they say?" };
const remember = (count: number): readonly object[] =>
  Array.from({ length: count }, (_, index) => [
    { role: "user", content: `Remember ${index}: ${long(index)}` },
    { role: "assistant", content: `I remember ${index}.` },
  ]).flat();

describe("a conversation that overflows", () => {
  const surfaces: readonly (readonly [path: string, mode: "guard" | "stateful", of: (messages: object[]) => object])[] =
    [
      ["anthropic/v1/messages", "guard", (messages) => ({ model: "claude-opus-5", max_tokens: 300, messages })],
      ["openai/v1/chat/completions", "guard", (messages) => ({ model: "gpt-4.1", messages })],
      ["openai/v1/responses", "guard", (input) => ({ model: "gpt-4.1", store: false, input })],
      ["anthropic/v1/messages", "stateful", (messages) => ({ model: "claude-opus-5", max_tokens: 300, messages })],
    ];

  it.each(surfaces)(
    "is summed up once for many refused calls of a conversation at %s in %s mode",
    { tags: ["slow"] },
    async (path, mode, of) => {
      const asked: string[] = [];
      const summarizer: Summarizer = {
        summarize: async ({ text }) => ({ summary: `Summary ${asked.push(text)} of it.`, source: "test", usage: null }),
      };
      const at = await start(mode, [summarizer]);
      const history = [...remember(8)];
      for (let round = 0; round < 4; round++) {
        const messages = [...history, { role: "user", content: `Question ${round}?` }];
        const { answer, text } = await post(at, path, of(messages), { "throughline-session": "long" });
        expect([answer.status, answer.headers.get("throughline-guard")]).toEqual([
          200,
          expect.stringMatching(/^compacted; /),
        ]);
        expect(text).toContain("It fits now.");
        history.push(messages.at(-1) as object, { role: "assistant", content: "It fits now." });
        await at.calls((round + 1) * 2);
      }
      expect(asked).toHaveLength(1);
      const sent = at.simulator.requests.filter((_, index) => index % 2 === 1).map(({ body }) => JSON.stringify(body));
      for (const body of sent) expect(body).toContain("Summary 1 of it.");
      // What is sent in its place begins alike, so that a provider's cache has it.
      const beginning = sent[0]?.slice(0, sent[0].indexOf("Question 0?")) ?? "";
      expect(beginning.length).toBeGreaterThan(1000);
      for (const body of sent) expect(body.startsWith(beginning.slice(0, beginning.lastIndexOf('{"role"')))).toBe(true);
      const calls = await at.calls(8);
      const rebuilt = await Promise.all(calls.map(async (one) => sha256(await at.requestOf(one))));
      expect(rebuilt.toSorted()).toEqual(at.simulator.requests.map(({ bytes }) => sha256(bytes)).toSorted());
      // Once what is behind the summary does not fit either, that and the summary are summed up.
      const more = [...history, ...remember(3), { role: "user", content: "And at last?" }];
      expect((await post(at, path, of(more), { "throughline-session": "long" })).answer.status).toBe(200);
      expect(asked).toHaveLength(2);
      expect(asked[1]).toContain("Summary 1 of it.");
    },
  );
});

describe("the mode", () => {
  it("of a token comes before that of the upstream", async () => {
    const at = await start("guard");
    const scopes = ["gateway:anthropic", "read"] as const;
    const body = JSON.stringify({ model: "claude-opus-5", max_tokens: 300, messages: [...remember(8), question] });
    const ask = async (token: string): Promise<readonly [number, string | null]> => {
      const headers = { "x-api-key": token, "anthropic-version": "2023-06-01" };
      const answer = await fetch(`${at.url}/anthropic/v1/messages`, { method: "POST", headers, body });
      await answer.text();
      return [answer.status, answer.headers.get("throughline-guard")];
    };
    const recording = await at.serving.tokenOf({ namespace: "", scopes, mode: "record" });
    expect(await ask(recording)).toEqual([400, null]);
    expect(at.simulator.requests).toHaveLength(1);
    const guarded = await at.serving.tokenOf({ namespace: "", scopes, mode: "guard" });
    expect(await ask(guarded)).toEqual([200, expect.stringMatching(/^(?:truncated|compacted); /)]);
    const made = await at.serving.ask("POST", "/admin/tokens", { body: { scopes, mode: "stateful" } });
    expect([made.status, made.body["mode"]]).toEqual([201, "stateful"]);
    const wrong = await at.serving.ask("POST", "/admin/tokens", { body: { scopes, mode: "watch" } });
    expect([wrong.status, wrong.body["code"]]).toEqual([400, "INPUT_INVALID"]);
  });
});
