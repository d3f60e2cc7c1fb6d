import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { openSession, type SessionRef } from "@throughline/core";
import { throughlineDraft } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { bodyText, splitRequest } from "../../src/wire/split-request.ts";
import { planCall, planFrame } from "../../src/wire/plan-call.ts";
import { WireLog } from "../../src/wire/wire-log.ts";
import type { ExchangeData } from "../../src/wire/exchange-data.ts";
import { planReply } from "../../src/wire/plan-reply.ts";
import { readExchange, rebuildRequest } from "../../src/wire/rebuild-request.ts";
import { readReply } from "../../src/wire/read-reply.ts";
import type { WireApi } from "../../src/wire/wire-api.ts";

const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:gateway:direct:test" };
const sha256 = (text: string | Uint8Array): string => createHash("sha256").update(text).digest("hex");

/** Stores requests one after the other, as a gateway does, and gives back what a reader of the log gets. */
class Recording {
  readonly store = createMemoryStore();
  readonly log = new WireLog();
  readonly known: number[] = [];
  readonly #seqs: number[] = [];
  readonly #bodies: string[] = [];
  storedBytes = 0;
  readonly #isEarlier: boolean;

  /** @param isEarlier frames are written as earlier versions wrote them */
  constructor(isEarlier = false) {
    this.#isEarlier = isEarlier;
  }

  async take(api: WireApi, body: string, reply: string | null = null, type = "application/json"): Promise<void> {
    if (this.#seqs.length === 0) await openSession(this.store, ref, {});
    const split = splitRequest(api, bodyText(Buffer.from(body)) ?? "");
    if (split === null) throw new Error("no request");
    const match = this.log.match(split);
    this.known.push(match.known);
    const plan = planCall(this.log, split, match);
    const draft = reply === null ? null : readReply(api, type, reply, "m").draft;
    const planned = draft === null ? null : planReply(this.log, api, plan.tip, draft);
    const said = planned?.draft ?? null;
    const { frame, ...framed } = planFrame(this.log, split, plan).data;
    const parentOf = new Map(plan.nodes.map(({ id, parent }) => [id, parent?.id ?? null]));
    const facts = {
      callId: "c",
      attempt: 0,
      outcome: "answered",
      requestSha256: sha256(body),
      ...framed,
      frame: this.#isEarlier ? asWrittenBefore(frame, parentOf) : frame,
    };
    const drafts = [...plan.drafts, ...(said === null ? [] : [said]), throughlineDraft("exchange", facts)];
    const { stored = [] } = await this.store.append(ref, drafts, { return: "stored" });
    for (const record of stored) this.log.apply(record);
    this.storedBytes += JSON.stringify(stored.map(({ record }) => record)).length;
    this.#seqs.push(stored.at(-1)?.seq ?? 0);
    this.#bodies.push(body);
  }

  /** Every body as a reader of the log rebuilds it, without what the writer knew. */
  async rebuilt(): Promise<readonly boolean[]> {
    const same: boolean[] = [];
    for (const [index, seq] of this.#seqs.entries()) {
      for await (const { records } of this.store.read(ref, { afterSeq: seq - 1, limit: 1 })) {
        const exchange = records[0] === undefined ? null : readExchange(records[0]);
        if (exchange === null) throw new Error("no exchange");
        const { body: bytes } = await rebuildRequest(this.store.read(ref, { beforeSeq: seq }), exchange);
        same.push(sha256(bytes) === sha256(this.#bodies[index] ?? ""));
      }
    }
    return same;
  }
}

/** A frame as earlier versions wrote it: a run states its first message, and each other form is an entry of its own. */
function asWrittenBefore(
  frame: ExchangeData["frame"],
  parentOf: ReadonlyMap<string, string | null>,
): ExchangeData["frame"] {
  return frame.flatMap((entry): ExchangeData["frame"] => {
    if (typeof entry !== "object" || !("last" in entry)) return [entry];
    const ids: string[] = [];
    for (let id: string | null = entry.last; id !== null && ids.length < entry.count; id = parentOf.get(id) ?? null)
      ids.unshift(id);
    const { forms = [] } = entry;
    const newest = ids.slice(0, ids.length - forms.length);
    const [first] = newest;
    const run = first === undefined ? [] : [{ first, last: newest.at(-1) ?? first, count: newest.length }];
    return [...run, ...ids.slice(newest.length).map((id, index) => ({ id, form: forms[index] ?? 0 }))];
  });
}

const tools = Array.from({ length: 20 }, (_, index) => ({ name: `t${index}`, description: "d".repeat(200) }));
const system = [{ type: "text", text: "s".repeat(2000), cache_control: { type: "ephemeral" } }];

interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}
interface Said {
  readonly role: string;
  readonly content: readonly Block[];
}

/** The two newest messages have the marks, as agents set them. */
function marked(messages: readonly Said[]): readonly Said[] {
  return messages.map((message, index) =>
    index < messages.length - 2
      ? message
      : {
          ...message,
          content: message.content.map((block, at) =>
            at === message.content.length - 1 ? { ...block, cache_control: { type: "ephemeral" } } : block,
          ),
        },
  );
}

function reply(number: number): { readonly content: readonly Block[]; readonly text: string } {
  const content: readonly Block[] = [
    { type: "text", text: `ok ${number} ${"a".repeat(300)}` },
    { type: "tool_use", id: `toolu_${number}`, name: "t1", input: { path: `file-${number}.txt`, lines: [1, number] } },
  ];
  const whole = {
    id: `msg_${number}`,
    type: "message",
    role: "assistant",
    model: "m",
    content,
    stop_reason: "tool_use",
  };
  return { content, text: JSON.stringify({ ...whole, usage: { input_tokens: 10, output_tokens: 5 } }) };
}

describe("requests of a conversation", () => {
  it.each([false, true])(
    "are given back byte for byte, and grow with what is new, also in frames of an earlier version (%s)",
    { tags: ["slow"] },
    async (isEarlier) => {
      const recording = new Recording(isEarlier);
      const messages: Said[] = [];
      let contentBytes = 0;
      const calls = 120;
      for (let number = 0; number < calls; number++) {
        const result = { type: "tool_result", tool_use_id: `toolu_${number - 1}`, content: "r".repeat(1000 + number) };
        messages.push({
          role: "user",
          content: [number === 0 ? { type: "text", text: "Please begin. ".repeat(20) } : result],
        });
        const body = JSON.stringify({
          model: "m",
          max_tokens: 1,
          system,
          messages: marked(messages),
          tools,
          stream: true,
        });
        const { content, text } = reply(number);
        await recording.take("anthropic-messages", body, text);
        contentBytes += JSON.stringify(messages.at(-1)).length + JSON.stringify(content).length;
        messages.push({ role: "assistant", content });
      }
      expect(await recording.rebuilt()).toEqual(Array.from({ length: calls }, () => true));
      // Each request adds one message: the reply before it is known.
      expect(recording.known.map((known, index) => index * 2 - known)).toEqual(recording.known.map(() => 0));
      expect((recording.storedBytes - 1.3 * contentBytes) / calls).toBeLessThan(2000);
    },
  );

  it("are branches where the history was edited, and are all given back", async () => {
    const recording = new Recording();
    const send = async (texts: readonly string[]): Promise<void> => {
      const messages = texts.map((text, index) => ({ role: index % 2 === 0 ? "user" : "assistant", content: text }));
      await recording.take("anthropic-messages", JSON.stringify({ model: "m", max_tokens: 1, messages }));
    };
    await send(["one"]);
    await send(["one", "two", "three"]);
    await send(["one", "two", "three, edited"]);
    await send(["one", "two", "three", "four", "five"]);
    await send(["something else"]);
    expect(recording.known).toEqual([0, 1, 2, 3, 0]);
    expect(await recording.rebuilt()).toEqual([true, true, true, true, true]);
  });

  it.each([
    ["pretty-printed", (value: unknown) => JSON.stringify(value, null, 2)],
    ["with CR LF", (value: unknown) => JSON.stringify(value, null, 1).replaceAll("\n", "\r\n")],
    ["with blanks around", (value: unknown) => `\n ${JSON.stringify(value)} \r\n`],
    ["with escapes", (value: unknown) => JSON.stringify(value).replaceAll("é", "\\u00e9").replaceAll("/", "\\/")],
    [
      "with a member twice",
      (value: unknown) => JSON.stringify(value).replace("{", '{"messages":[{"role":"user","content":"no"}],'),
    ],
  ])("are given back where they are written %s", async (_name, write) => {
    const recording = new Recording();
    const history: unknown[] = [{ role: "user", content: "Héllo / there, this is a longer text" }];
    await recording.take("anthropic-messages", write({ model: "m", messages: history }));
    history.push({ role: "assistant", content: [{ type: "text", text: "1e3", extra: [1e3, -0, null] }] });
    history.push({ role: "user", content: [{ type: "text", text: "é", cache_control: { type: "ephemeral" } }] });
    await recording.take("anthropic-messages", write({ model: "m", messages: history }));
    expect(await recording.rebuilt()).toEqual([true, true]);
    expect(recording.known).toEqual([0, 1]);
  });

  it("are kept as they came where no record can say a message", async () => {
    const recording = new Recording();
    const odd = [{ role: "oracle", content: 7 }, { role: "user", content: "after it" }, "text", null, [1, { a: 2 }]];
    await recording.take("anthropic-messages", JSON.stringify({ messages: odd }));
    await recording.take("openai-completions", JSON.stringify({ messages: odd }));
    expect(await recording.rebuilt()).toEqual([true, true]);
  });

  it("take marks of a cache, thinking and null for no difference, and words for one", async () => {
    const known = async (first: unknown, second: unknown): Promise<number> => {
      const recording = new Recording();
      const ask = { role: "user", content: "go on with the next one, please" };
      await recording.take("anthropic-messages", JSON.stringify({ messages: [{ role: "user", content: "a" }, first] }));
      await recording.take(
        "anthropic-messages",
        JSON.stringify({ messages: [{ role: "user", content: "a" }, second, ask] }),
      );
      expect(await recording.rebuilt()).toEqual([true, true]);
      return recording.known[1] ?? 0;
    };
    const text = { type: "text", text: "b" };
    const said = { role: "assistant", content: [text] };
    const thinking = { type: "thinking", thinking: "hm", signature: "abc" };
    expect(await known(said, { ...said, content: [{ ...text, citations: null }] })).toBe(2);
    expect(await known(said, { ...said, content: [thinking, { ...text, cache_control: { type: "ephemeral" } }] })).toBe(
      2,
    );
    expect(await known(said, { ...said, content: "b\n" })).toBe(2);
    expect(await known(said, { ...said, content: "c" })).toBe(1);
    expect(await known(said, { role: "user", content: "b" })).toBe(1);
  });

  it("of Codex begin with tools that are no message, and are given back", async () => {
    const recording = new Recording();
    const tools = [{ type: "custom", name: "exec", description: "Runs a program. ".repeat(200) }];
    const said = (role: string, type: string, text: string): object => ({
      type: "message",
      role,
      content: [{ type, text }],
    });
    const items = (id: string): object[] => [
      { type: "additional_tools", id, role: "developer", tools },
      said("developer", "input_text", "You are an agent. ".repeat(200)),
      said("user", "input_text", "Look around"),
    ];
    const body = (input: readonly object[]): string => JSON.stringify({ model: "m", input });
    const first = splitRequest("openai-responses", body(items("at_1")));
    const other = splitRequest("openai-responses", body(items("at_2")));
    expect([first?.units.length, first?.partHash("tools")]).toEqual([1, other?.partHash("tools")]);
    await recording.take("openai-responses", body(items("at_1")));
    const call = { type: "custom_tool_call", call_id: "c1", name: "exec", input: "text(1)" };
    const result = { type: "custom_tool_call_output", call_id: "c1", output: "1" };
    const task = {
      type: "agent_message",
      author: "/root",
      recipient: "/root/a",
      content: [{ type: "input_text", text: "Go" }],
    };
    const more = [...items("at_1"), call, result, task];
    await recording.take("openai-responses", body(more));
    const answer = said("assistant", "output_text", "Done");
    await recording.take("openai-responses", body([...more, answer, said("user", "input_text", "Thanks")]));
    expect(recording.known).toEqual([0, 1, 4]);
    expect(await recording.rebuilt()).toEqual([true, true, true]);
    // Tools and instructions are stored once.
    expect(recording.storedBytes).toBeLessThan(13_000);
  });

  it("are refused where they are no object with messages, or too deep", () => {
    for (const text of [
      "",
      "[]",
      "{",
      '{"messages":7}',
      '{"messages":[}',
      '{"model":"m"}',
      `{"messages":${"[".repeat(1e5)}`,
    ])
      expect([text.slice(0, 20), splitRequest("anthropic-messages", text)]).toEqual([text.slice(0, 20), null]);
    expect(bodyText(Uint8Array.of(0xff, 0xfe))).toBe(null);
  });

  it("put an ollama result to the call of the reply before it", async () => {
    const recording = new Recording();
    const call = { function: { name: "read", arguments: { path: "a" } } };
    const first = { role: "user", content: "look" };
    const answer = { model: "m", message: { role: "assistant", content: "", tool_calls: [call] }, done: true };
    await recording.take("ollama", JSON.stringify({ model: "m", messages: [first] }), JSON.stringify(answer));
    const result = { role: "tool", tool_name: "read", content: "text" };
    await recording.take("ollama", JSON.stringify({ model: "m", messages: [first, answer.message, result] }));
    expect([recording.known, await recording.rebuilt()]).toEqual([
      [0, 2],
      [true, true],
    ]);
    const ids: unknown[] = [];
    for await (const { records } of recording.store.read(ref))
      for (const { record } of records) {
        const { toolCallId, content } = (record["message"] ?? {}) as { toolCallId?: string; content?: unknown };
        if (toolCallId !== undefined) ids.push(toolCallId);
        if (Array.isArray(content))
          ids.push(...content.flatMap((block: Block) => (block.type === "toolCall" ? [block["id"]] : [])));
      }
    expect(ids).toHaveLength(2);
    expect(ids[0]).toBe(ids[1]);
  });

  it("are not written again once they are redacted", async () => {
    const recording = new Recording();
    const secret = "the password is 1234567890";
    const body = JSON.stringify({ messages: [{ role: "user", content: [{ type: "text", text: secret }] }] });
    await recording.take("anthropic-messages", body);
    const ids: string[] = [];
    for await (const { records } of recording.store.read(ref))
      for (const { id, type } of records) if (type === "message") ids.push(id);
    await recording.store.redact(ref, ids, { reason: "test" });
    const log = new WireLog();
    for await (const { records } of recording.store.read(ref)) for (const record of records) log.apply(record);
    const again = splitRequest(
      "anthropic-messages",
      body.replace('"text":', '"cache_control":{"type":"ephemeral"},"text":'),
    );
    if (again === null) throw new Error("no request");
    const plan = planCall(log, again, log.match(again));
    const framed = planFrame(log, again, plan);
    expect(JSON.stringify([plan.drafts, framed])).not.toContain("1234567890");
    expect([framed.hasRedacted, framed.copies]).toEqual([true, []]);
  });
});
