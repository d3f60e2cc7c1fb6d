import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type GatewayServing, serveGateway, sha256 } from "./gateway-serving.ts";

let gateway: GatewayServing;
let other = "";
beforeAll(async () => {
  let count = 0;
  gateway = await serveGateway({ fallback: () => `Answer ${++count}.` });
  other = await gateway.serving.tokenOf({ namespace: "", scopes: ["gateway:anthropic", "gateway:openai"] });
});
afterAll(() => gateway.close());

interface Said {
  readonly role: string;
  readonly content: string;
}
interface Call {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly token?: string;
  /** @default 200 */
  readonly status?: number;
}

const tools = [{ name: "read", description: "Reads a file.", input_schema: { type: "object" } }];

/** Sends a call; gives the name of its session behind the token's, and the reply. */
async function send(call: Call): Promise<{ readonly session: string; readonly key: string; readonly reply: Reply }> {
  const { path = "anthropic/v1/messages", headers = {}, body = {}, token = gateway.token, status = 200 } = call;
  const answer = await fetch(`${gateway.url}/${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${token}`,
      "anthropic-version": "2023-06-01",
      ...headers,
    },
    body: JSON.stringify({ model: path.startsWith("openai") ? "gpt-5" : "claude-opus-5", max_tokens: 99, ...body }),
  });
  const reply = (await answer.json()) as Reply;
  expect([answer.status, JSON.stringify(reply)]).toEqual([status, expect.anything()]);
  const key = answer.headers.get("throughline-session") ?? "";
  const id = answer.headers.get("throughline-call") ?? "";
  // The next call of a client comes when this one is stored.
  await expect.poll(async () => (await gateway.serving.ask("GET", `/sessions/${key}/calls/${id}`)).status).toBe(200);
  return { session: key.replace(/^agent:main:gateway:direct:[a-z0-9]+-/, ""), key, reply };
}

interface Reply {
  readonly id: string;
  readonly content: readonly { readonly text: string }[];
}

const user = (content: string): Said => ({ role: "user", content });

/** A conversation: each text is said, and the answers stand between them. */
async function talk(texts: readonly string[], call: Call = {}, history: Said[] = []): Promise<readonly string[]> {
  const sessions: string[] = [];
  for (const text of texts) {
    history.push(user(text));
    const { session, reply } = await send({ ...call, body: { messages: history, ...call.body } });
    history.push({ role: "assistant", content: reply.content[0]?.text ?? "" });
    sessions.push(session);
  }
  return sessions;
}

async function recordsOf(key: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { body } = await gateway.serving.ask("GET", `/sessions/${key}/records?limit=500`);
  return (body["items"] as readonly { readonly record: Readonly<Record<string, unknown>> }[]).map(
    ({ record }) => record,
  );
}

async function exchangesOf(key: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return (await recordsOf(key))
    .filter(({ customType }) => customType === "throughline.exchange")
    .map(({ id, data }) => ({
      // What is usual is left out.
      callId: String(id).replace(/^x-/, ""),
      attempt: 0,
      lane: "main",
      ...(data as Readonly<Record<string, unknown>>),
    }));
}

const keyOf = (session: string): string =>
  `agent:main:gateway:direct:${/tl_([a-z0-9]+)_/.exec(gateway.token)?.[1]}-${session}`;

/** Clients, with the sessions in which a person would look for each of their calls. */
const shapes: readonly (readonly [
  client: string,
  run: () => Promise<readonly string[]>,
  sessions: readonly string[],
])[] = [
  [
    "Claude Code: the main agent",
    () => talk(["one", "two", "three"], { headers: { "x-claude-code-session-id": "cc-1" }, body: { tools } }),
    ["cc-1", "cc-1", "cc-1"],
  ],
  [
    "Claude Code: a title, asked with the first question and without tools",
    () => talk(["one"], { headers: { "x-claude-code-session-id": "cc-1" } }),
    ["cc-1-side"],
  ],
  [
    "Claude Code: a probe of the quota",
    () => talk(["quota"], { headers: { "x-claude-code-session-id": "cc-1" } }),
    ["cc-1-side"],
  ],
  [
    "Claude Code: two sub-agents with one task",
    async () => {
      const agent = (id: string): Call => ({
        headers: { "x-claude-code-session-id": "cc-1", "x-claude-code-agent-id": id },
        body: { tools },
      });
      return [...(await talk(["look", "on"], agent("a"))), ...(await talk(["look"], agent("b")))];
    },
    ["cc-1-a", "cc-1-a", "cc-1-b"],
  ],
  [
    "Claude Code: a compaction, and the shorter history after it",
    async () => {
      const headers = { "x-claude-code-session-id": "cc-2" };
      const first = await talk(["one", "two"], { headers, body: { tools } });
      const summary = { "x-claude-code-compaction": "1", ...headers };
      return [...first, ...(await talk(["the summary", "three"], { headers: summary, body: { tools } }))];
    },
    ["cc-2", "cc-2", "cc-2", "cc-2"],
  ],
  [
    "Claude Code by its user id",
    () => talk(["one", "two"], { body: { metadata: { user_id: "user_ab12_account__session_cc-3" } } }),
    ["cc-3", "cc-3"],
  ],
  [
    "Codex: a thread, and a sub-agent with a thread of its own",
    async () => {
      const headers = (more: object = {}): Record<string, string> => ({
        session_id: "cx-1",
        "x-codex-turn-metadata": JSON.stringify({ session_id: "cx-1", request_kind: "turn", ...more }),
      });
      const child = headers({ thread_id: "cx-2", parent_thread_id: "cx-1" });
      return [...(await talk(["one", "two"], { headers: headers() })), ...(await talk(["sub"], { headers: child }))];
    },
    ["cx-1", "cx-1", "cx-1-cx-2"],
  ],
  [
    "Claude Code: a title and a probe of the quota, asked before the main agent asks anything",
    async () => {
      const headers = { "x-claude-code-session-id": "cc-5" };
      const schema = { type: "object", properties: { title: { type: "string" } }, additionalProperties: false };
      const titled = { tools: [], output_config: { format: { type: "json_schema", schema } } };
      return [
        ...(await talk(["<session>one</session>"], { headers, body: titled })),
        ...(await talk(["quota"], { headers, body: { max_tokens: 1 } })),
        ...(await talk(["one", "two"], { headers, body: { tools } })),
      ];
    },
    ["cc-5-side", "cc-5-side", "cc-5", "cc-5"],
  ],
  [
    "Claude Code without tools",
    () => talk(["one", "two"], { headers: { "x-claude-code-session-id": "cc-6" }, body: { tools: [] } }),
    ["cc-6", "cc-6"],
  ],
  [
    "opencode: a title first, the main agent, and a sub-agent in a session of its own",
    async () => {
      const headers = (id: string, more: object = {}): Record<string, string> => ({
        "user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.46 runtime/bun/1.3.14",
        "x-session-affinity": id,
        "x-session-id": id,
        ...more,
      });
      return [
        ...(await talk(["a title, please"], { headers: headers("oc-1") })),
        ...(await talk(["one", "two"], { headers: headers("oc-1"), body: { tools } })),
        ...(await talk(["sub"], { headers: headers("oc-2", { "x-parent-session-id": "oc-1" }), body: { tools } })),
      ];
    },
    ["oc-1-side", "oc-1", "oc-1", "oc-2"],
  ],
  [
    "opencode",
    () => talk(["one", "two"], { headers: { "x-opencode-session": "ses_0A" } }),
    Array.from({ length: 2 }, () => `h${sha256(Buffer.from("ses_0A")).slice(0, 32)}`),
  ],
  [
    "a program that names its session",
    () => talk(["one", "two"], { headers: { "throughline-session": "mine" } }),
    ["mine", "mine"],
  ],
];

describe("sessions of clients", () => {
  it.each(shapes)("%s", async (_client, run, sessions) => {
    expect(await run()).toEqual(sessions);
  });

  it("tell a title from the main agent while the first call of that one runs", { tags: ["slow"] }, async () => {
    const headers = { "x-claude-code-session-id": "cc-4" };
    gateway.simulator.enqueue({ kind: "answer", content: "Slow.", delayMs: 300 }, "Quick.");
    const main = talk(["one"], { headers, body: { tools } });
    await expect.poll(() => gateway.simulator.requests.at(-1)?.headers["x-claude-code-session-id"]).toBe("cc-4");
    expect(await talk(["one"], { headers })).toEqual(["cc-4-side"]);
    expect(await main).toEqual(["cc-4"]);
  });

  it("have their parent, their lane and the compaction", async () => {
    const { body } = await gateway.serving.ask("GET", `/sessions/${keyOf("cc-1-a")}/entry`);
    expect(body["entry"]).toMatchObject({ spawnedBy: keyOf("cc-1"), clientSessionId: "cc-1" });
    expect((await exchangesOf(keyOf("cc-1-a"))).map(({ lane }) => lane)).toEqual(["agent", "agent"]);
    const spawned = await gateway.serving.ask("GET", `/sessions/${keyOf("oc-2")}/entry`);
    expect(spawned.body["entry"]).toMatchObject({ spawnedBy: keyOf("oc-1"), clientSessionId: "oc-2" });
    const programs = ["cc-1", "cc-1-a", "mine"].map(async (part) => {
      const { body: session } = await gateway.serving.ask("GET", `/sessions/${keyOf(part)}`);
      return session["program"];
    });
    expect(await Promise.all(programs)).toEqual(["claude-code", "claude-code", null]);
    expect((await exchangesOf(keyOf("oc-2"))).map(({ lane }) => lane)).toEqual(["agent"]);
    expect((await exchangesOf(keyOf("cc-1-side"))).map(({ lane }) => lane)).toEqual(["side", "side"]);
    const compacted = await exchangesOf(keyOf("cc-2"));
    expect(compacted.map(({ compactionOf }) => typeof compactionOf)).toEqual([
      "undefined",
      "undefined",
      "string",
      "undefined",
    ]);
    // What was said before the compaction is still there.
    const texts = JSON.stringify(await recordsOf(keyOf("cc-2")));
    for (const text of ["one", "two", "the summary", "three"]) expect(texts).toContain(`"${text}"`);
  });
});

describe("a client that names nothing", () => {
  it("has a session for each conversation, also where two begin alike and are answered differently", async () => {
    const [a, b]: [Said[], Said[]] = [[], []];
    const first = await talk(["Hello there"], {}, a);
    const second = await talk(["Hello there"], {}, b);
    expect(second).not.toEqual(first);
    const on = [...(await talk(["go on"], {}, a)), ...(await talk(["go on"], {}, b)), ...(await talk(["more"], {}, a))];
    expect(on).toEqual([...first, ...second, ...first]);
  });

  it("has two sessions where two begin alike at once", async () => {
    for (const content of ["Yes?", "What?"]) gateway.simulator.enqueue({ kind: "answer", content, delayMs: 200 });
    const both = await Promise.all([50, 60].map(async (size) => talk(["Alike"], { body: { max_tokens: size } })));
    expect(new Set(both.flat()).size).toBe(2);
  });

  it("has a session of its own for a retry where another conversation has taken the place", async () => {
    gateway.simulator.enqueue({ kind: "error", status: 500 });
    const messages = [user("Alike, and failed")];
    const failed = await send({ body: { messages, max_tokens: 50 }, status: 500 });
    const taken = await send({ body: { messages, max_tokens: 60 } });
    const again = await send({ body: { messages, max_tokens: 50 } });
    expect(taken.session).toBe(failed.session);
    expect(again.session).not.toBe(taken.session);
  });

  it("keeps an answer that is asked for again as a branch beside the first", async () => {
    const history: Said[] = [];
    const [session = ""] = await talk(["Tell me a joke"], { headers: { "throughline-session": "again" } }, history);
    for (let time = 0; time < 2; time++)
      await send({ headers: { "throughline-session": "again" }, body: { messages: [history[0]] } });
    const records = await recordsOf(keyOf(session));
    const replies = records.filter(({ message }) => (message as Said | undefined)?.role === "assistant");
    expect([replies.length, new Set(replies.map(({ parentId }) => parentId)).size]).toEqual([3, 1]);
    expect((await exchangesOf(keyOf(session))).map(({ attempt }) => attempt)).toEqual([0, 0, 0]);
    expect(new Set((await exchangesOf(keyOf(session))).map(({ callId }) => callId)).size).toBe(3);
  });

  it("has a branch where it edits its history", async () => {
    const history: Said[] = [];
    const [session] = await talk(["plan a trip", "to Rome", "by train"], {}, history);
    expect(await talk(["by ship"], {}, history.slice(0, 4))).toEqual([session]);
  });

  it("is followed by the id of a response", async () => {
    const path = "openai/v1/responses";
    const ask = async (input: string, more: object = {}): ReturnType<typeof send> =>
      send({ path, body: { input, ...more } });
    const first = await ask("One response");
    const second = await ask("Another", { previous_response_id: first.reply.id });
    const third = await ask("A third", { previous_response_id: second.reply.id });
    expect([second.session, third.session]).toEqual([first.session, first.session]);
  });

  it("never reaches the session of another token, by its words, its ids or its names", async () => {
    const history: Said[] = [];
    const mine = await send({
      body: { messages: [user("a secret plan")] },
      headers: { "x-opencode-session": "shared" },
    });
    const theirs = await send({
      token: other,
      body: { messages: [user("a secret plan")] },
      headers: { "x-opencode-session": "shared" },
    });
    expect([theirs.session, theirs.key === mine.key]).toEqual([mine.session, false]);
    await talk(["some words"], {}, history);
    const sent = await send({ token: other, body: { messages: [...history, user("and more")] } });
    expect(sent.key).not.toContain(/tl_([a-z0-9]+)_/.exec(gateway.token)?.[1] ?? "");
  });
});
