import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { type GatewayServing, serveGateway } from "./gateway-serving.ts";

/** A conversation of a client, made with its SDK, whose calls say where a person would look for them. */
interface Shape {
  readonly client: string;
  readonly sdk: "Anthropic" | "OpenAI chat" | "OpenAI Responses" | "Ollama";
  /** The place of each call, in the order of the calls. */
  readonly run: (take: Take) => Promise<void>;
}

/** Notes the session that an answer names, under the place where the call belongs. */
type Take = (place: string, headers: Headers) => void;

type Turns = Anthropic.MessageParam[];
type Chat = OpenAI.ChatCompletionMessageParam[];

const readTool: Anthropic.Tool = {
  name: "read",
  description: "Reads a file of the project and gives its text, at most 2,000 lines of it, with their numbers.",
  input_schema: { type: "object", properties: { path: { type: "string" } } },
};

let gateway: GatewayServing;
const anthropic = (headers: Record<string, string> = {}): Anthropic =>
  new Anthropic({ apiKey: gateway.token, baseURL: `${gateway.url}/anthropic`, defaultHeaders: headers });
const openai = (): OpenAI => new OpenAI({ apiKey: gateway.token, baseURL: `${gateway.url}/openai/v1` });

interface Asking {
  readonly client: Anthropic;
  readonly turns: Turns;
  readonly place: string;
  readonly take: Take;
  readonly more?: Pick<Anthropic.MessageStreamParams, "system" | "tools">;
}

/** One call of the SDK, streamed, with the mark of the cache on its last message; gives the reply and keeps it. */
async function ask({ client, turns, place, take, more = {} }: Asking): Promise<Anthropic.Message> {
  const marked = turns.map((turn, index) => (index === turns.length - 1 ? withMark(turn) : turn));
  const stream = client.messages.stream({ model: "claude-opus-5", max_tokens: 500, messages: marked, ...more });
  const { data, response } = await stream.withResponse();
  const reply = await data.finalMessage();
  take(place, response.headers);
  turns.push({ role: "assistant", content: reply.content });
  return reply;
}

function withMark(turn: Anthropic.MessageParam): Anthropic.MessageParam {
  const { content } = turn;
  const blocks = typeof content === "string" ? [{ type: "text" as const, text: content }] : [...content];
  const last = blocks.pop();
  const mark = { cache_control: { type: "ephemeral" } };
  return { ...turn, content: last === undefined ? content : [...blocks, { ...last, ...mark }] } as typeof turn;
}

/** A turn of an agent: a question, a call of its tool, the result, the answer. */
async function work(asking: Asking, question: string): Promise<void> {
  asking.turns.push({ role: "user", content: question });
  gateway.simulator.enqueue({
    kind: "answer",
    content: [{ type: "tool-call", name: "read", input: { path: question } }],
  });
  const reply = await ask(asking);
  const results = reply.content.flatMap((block) =>
    block.type === "tool_use"
      ? [{ type: "tool_result" as const, tool_use_id: block.id, content: `Text of ${question}` }]
      : [],
  );
  asking.turns.push({ role: "user", content: results });
  await ask(asking);
}

async function chat(history: Chat, question: string, place: string, take: Take): Promise<void> {
  history.push({ role: "user", content: question });
  const { data, response } = await openai()
    .chat.completions.create({ model: "gpt-5", messages: history })
    .withResponse();
  take(place, response.headers);
  history.push({ role: "assistant", content: data.choices[0]?.message.content ?? "" });
}

const system = "You are an agent that works on a project. ".repeat(20);
const agent = { system, tools: [readTool] };
const named = (headers: Record<string, string> = {}): Anthropic =>
  anthropic({ "x-claude-code-session-id": "c0ffee", ...headers });
const mainTurns: Turns = [];

const shapes: readonly Shape[] = [
  {
    client: "main agent with a tool",
    sdk: "Anthropic",
    run: async (take) => {
      for (const question of ["a.ts", "b.ts", "c.ts"])
        await work({ client: named(), turns: mainTurns, place: "main", take, more: agent }, question);
    },
  },
  {
    client: "title of its conversation",
    sdk: "Anthropic",
    run: async (take) => {
      const turns: Turns = [{ role: "user", content: "a.ts" }];
      await ask({ client: named(), turns, place: "main, side", take, more: { system: "Write a title." } });
    },
  },
  {
    client: "two sub-agents with one task, at once",
    sdk: "Anthropic",
    run: async (take) => {
      const one = async (id: string): Promise<void> => {
        const client = named({ "x-claude-code-agent-id": id });
        const turns: Turns = [];
        for (const question of ["look", "look again"]) {
          turns.push({ role: "user", content: question });
          await ask({ client, turns, place: `main, agent ${id}`, take, more: agent });
        }
      };
      await Promise.all([one("1"), one("2")]);
    },
  },
  {
    client: "main agent after its compaction",
    sdk: "Anthropic",
    run: async (take) => {
      const turns: Turns = [{ role: "user", content: "Summary: three files were read. Go on with d.ts." }];
      await ask({ client: named(), turns, place: "main", take, more: agent });
      await work({ client: named(), turns, place: "main", take, more: agent }, "e.ts");
    },
  },
  {
    client: "answer asked for again, twice, nothing named",
    sdk: "OpenAI chat",
    run: async (take) => {
      const history: Chat = [];
      await chat(history, "A joke, please", "jokes", take);
      await chat(history, "Another one", "jokes", take);
      const before = history.slice(0, 2);
      for (let time = 0; time < 2; time++) await chat([...before], "Another one", "jokes", take);
    },
  },
  {
    client: "edited history, nothing named",
    sdk: "OpenAI chat",
    run: async (take) => {
      const history: Chat = [];
      for (const question of ["Plan a trip", "to Rome", "by train"]) await chat(history, question, "trip", take);
      const edited = history.slice(0, 2);
      for (const question of ["to Oslo", "by ship"]) await chat(edited, question, "trip", take);
    },
  },
  {
    client: "two conversations that begin alike, nothing named",
    sdk: "Anthropic",
    run: async (take) => {
      const both: readonly Asking[] = ["hello 1", "hello 2"].map((place) => ({
        client: anthropic(),
        turns: [],
        place,
        take,
      }));
      for (const question of ["Hello", "How are you?", "Good"])
        for (const asking of both) {
          asking.turns.push({ role: "user", content: question });
          await ask(asking);
        }
    },
  },
  {
    client: "responses that follow each other by id, and a fork",
    sdk: "OpenAI Responses",
    run: async (take) => {
      const ids: string[] = [];
      for (const [question, follows] of [
        ["One", null],
        ["Two", 0],
        ["Three", 1],
        ["Two again", 0],
      ] as const) {
        const previous = follows === null ? {} : { previous_response_id: ids[follows] ?? "" };
        const { data, response } = await openai()
          .responses.create({ model: "gpt-5", input: question, ...previous })
          .withResponse();
        take("responses", response.headers);
        ids.push(data.id);
      }
    },
  },
  {
    client: "chat, nothing named",
    sdk: "Ollama",
    run: async (take) => {
      const own: typeof fetch = async (input, init) => {
        const answer = await fetch(input, init);
        take("chat", answer.headers);
        return answer;
      };
      const client = new Ollama({
        host: `${gateway.url}/ollama`,
        headers: { authorization: `Bearer ${gateway.token}` },
        fetch: own,
      });
      const messages: { role: string; content: string }[] = [];
      for (const content of ["Good morning", "What day is it?", "Thanks"]) {
        messages.push({ role: "user", content });
        const { message } = await client.chat({ model: "llama3", messages });
        messages.push(message);
      }
    },
  },
];

/** The sessions of one shape: how many there must be, how many there are, and the calls in a session that is not theirs. */
interface Placing {
  readonly client: string;
  readonly sdk: Shape["sdk"];
  readonly calls: number;
  readonly wanted: number;
  readonly found: number;
  /** Calls that are not in the session of the first call of their place. */
  readonly elsewhere: number;
}

/** In which places a person looks, and in which sessions the calls are. */
async function placeCalls(): Promise<readonly Placing[]> {
  const made: { readonly shape: Shape; readonly calls: (readonly [place: string, callId: string])[] }[] = [];
  for (const shape of shapes) {
    const calls: (readonly [string, string])[] = [];
    await shape.run((place, headers) => calls.push([place, headers.get("throughline-call") ?? ""]));
    made.push({ shape, calls });
  }
  const stored = await gateway.calls(made.reduce((sum, { calls }) => sum + calls.length, 0));
  const sessionOf = new Map(stored.map(({ callId, session }) => [callId, session]));
  /** Of each place the session that its first call is in. */
  const places = new Map<string, string>();
  return made.map(({ shape, calls }) => {
    const keys = calls.map(([, callId]) => sessionOf.get(callId) ?? "none");
    let elsewhere = 0;
    for (const [index, [place]] of calls.entries()) {
      const key = keys[index] ?? "none";
      const isTaken = [...places].some(([other, known]) => known === key && other !== place);
      if (!places.has(place) && !isTaken && key !== "none") places.set(place, key);
      if (places.get(place) !== key) elsewhere += 1;
    }
    const wanted = new Set(calls.map(([place]) => place)).size;
    const { client, sdk } = shape;
    return { client, sdk, calls: calls.length, wanted, found: new Set(keys).size, elsewhere };
  });
}

/** How many calls each shape makes, and in how many sessions a person expects them. */
const expected: readonly (readonly [client: string, sdk: Shape["sdk"], calls: number, sessions: number])[] = [
  ["main agent with a tool", "Anthropic", 6, 1],
  ["title of its conversation", "Anthropic", 1, 1],
  ["two sub-agents with one task, at once", "Anthropic", 4, 2],
  ["main agent after its compaction", "Anthropic", 3, 1],
  ["answer asked for again, twice, nothing named", "OpenAI chat", 4, 1],
  ["edited history, nothing named", "OpenAI chat", 5, 1],
  ["two conversations that begin alike, nothing named", "Anthropic", 6, 2],
  ["responses that follow each other by id, and a fork", "OpenAI Responses", 4, 1],
  ["chat, nothing named", "Ollama", 3, 1],
];

/** How long the store takes for each append: the next request comes before the reply of the last one is stored. */
it.each([0, 80])("ends in the sessions that a person expects, with %i ms for an append", async (appendMs) => {
  let count = 0;
  const inner = createMemoryStore();
  const store = new Proxy(inner, {
    get: (target, name): unknown => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      const call = (...given: readonly unknown[]): unknown => Reflect.apply(member, target, given) as unknown;
      if (name !== "append" || appendMs === 0) return call;
      return async (...given: readonly unknown[]) => {
        await new Promise((resolve) => setTimeout(resolve, appendMs));
        return call(...given);
      };
    },
  });
  gateway = await serveGateway({ fallback: () => `Answer ${++count}.` }, { openStore: () => store });
  try {
    mainTurns.length = 0;
    expect(await placeCalls()).toEqual(
      expected.map(([client, sdk, calls, count]) => {
        return { client, sdk, calls, wanted: count, found: count, elsewhere: 0 };
      }),
    );
  } finally {
    await gateway.close();
  }
});
