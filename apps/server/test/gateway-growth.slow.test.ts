import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { type GatewayServing, sha256, serveGateway } from "./gateway-serving.ts";

let gateway: GatewayServing;
beforeAll(async () => {
  gateway = await serveGateway({
    models: { "claude-opus-5": { windowTokens: 100_000_000 } },
    fallback: ({ body }) => {
      const { messages } = body as { readonly messages: readonly unknown[] };
      const input = { path: `file-${messages.length}.txt`, lines: [1, messages.length] };
      return {
        kind: "answer",
        content: [
          { type: "text", text: `Look ${"a".repeat(300)}` },
          { type: "tool-call", name: "read", input },
        ],
      };
    },
  });
});
afterAll(() => gateway.close());

interface Block {
  readonly type: string;
  readonly id?: string;
  readonly [field: string]: unknown;
}
interface Said {
  readonly role: string;
  readonly content: readonly Block[];
}

const tools = Array.from({ length: 20 }, (_, index) => ({
  name: index === 0 ? "read" : `tool-${index}`,
  description: "d".repeat(200),
  input_schema: { type: "object" },
}));
const mark = { cache_control: { type: "ephemeral" } };
const system = [{ type: "text", text: "s".repeat(4000), ...mark }];

/** The two newest messages have the marks, as agents set them. */
function marked(messages: readonly Said[]): readonly Said[] {
  return messages.map((message, index) => ({
    ...message,
    content: message.content.map((block, at) =>
      index >= messages.length - 2 && at === message.content.length - 1 ? { ...block, ...mark } : block,
    ),
  }));
}

/** A conversation of an agent; gives the bytes of what was said. */
async function converse(name: string, calls: number): Promise<number> {
  const messages: Said[] = [
    { role: "user", content: [{ type: "text", text: `Begin ${name}. ${"Please. ".repeat(40)}` }] },
  ];
  for (let call = 1; call <= calls; call++) {
    const answer = await fetch(`${gateway.url}/anthropic/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": gateway.token, "anthropic-version": "2023-06-01", "throughline-session": name },
      body: JSON.stringify({ model: "claude-opus-5", max_tokens: 1000, system, tools, messages: marked(messages) }),
    });
    const { content } = (await answer.json()) as Said;
    if (!answer.ok) throw new Error(JSON.stringify(content));
    messages.push({ role: "assistant", content });
    const id = content.find(({ type }) => type === "tool_use")?.id ?? "";
    messages.push({
      role: "user",
      content: [{ type: "tool_result", tool_use_id: id, content: "r".repeat(1000 + call) }],
    });
  }
  return JSON.stringify(messages.slice(0, -1)).length;
}

/** What a session holds beside its prompts, which are stored once. */
async function storedBytes(key: string): Promise<number> {
  let [bytes, after] = [0, 0];
  for (;;) {
    const { body } = await gateway.serving.ask("GET", `/sessions/${key}/records?limit=500&after=${after}`);
    const items = body["items"] as readonly {
      readonly seq: number;
      readonly record: { readonly customType?: string };
    }[];
    for (const { record } of items)
      if (record.customType !== "throughline.prompt") bytes += JSON.stringify(record).length;
    if (items.length === 0) return bytes;
    after = items.at(-1)?.seq ?? 0;
  }
}

describe("long conversations", () => {
  const long = testSize({ short: 15, long: 500 });
  const short = { conversations: testSize({ short: 1, long: 10 }), calls: testSize({ short: 4, long: 50 }) };

  it("grow with what is said, and every request is given back byte for byte", async () => {
    const content = await converse("long", long);
    for (let index = 0; index < short.conversations; index++) await converse(`short-${index}`, short.calls);
    const count = long + short.conversations * short.calls;
    await expect.poll(async () => await metricOf('calls_total{upstream="anthropic"'), { timeout: 60_000 }).toBe(count);
    const token = /tl_([a-z0-9]+)_/.exec(gateway.token)?.[1];
    const key = `agent:main:gateway:direct:${token}-long`;
    const list = async (session: string): Promise<readonly { readonly callId: string; readonly outcome: string }[]> =>
      (await gateway.serving.ask("GET", `/sessions/${session}/calls?tail=500`)).body["items"] as never;
    await expect.poll(async () => (await list(key)).length, { timeout: 60_000 }).toBe(long);
    const perCall = ((await storedBytes(key)) - 1.3 * content) / long;
    expect(perCall).toBeLessThan(2000);
    const keys = [
      key,
      ...Array.from({ length: short.conversations }, (_, index) => `agent:main:gateway:direct:${token}-short-${index}`),
    ];
    const rebuilt: string[] = [];
    for (const session of keys)
      for (const call of await list(session))
        rebuilt.push(sha256(await gateway.requestOf({ ...call, session } as never)));
    expect(rebuilt).toHaveLength(count);
    expect(rebuilt.toSorted()).toEqual(gateway.simulator.requests.map(({ bytes }) => sha256(bytes)).toSorted());
  }, 1_800_000);
});

async function metricOf(name: string): Promise<number> {
  const headers = { authorization: `Bearer ${gateway.serving.token}` };
  const text = await (await fetch(`${gateway.url}/metrics`, { headers })).text();
  const line = text.split("\n").find((one) => one.startsWith(`throughline_gateway_${name}`));
  return Number(line?.split(" ").at(-1) ?? 0);
}
