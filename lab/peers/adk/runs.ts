// Runs of the ADK's Runner over our session service, and what an event costs. Runs beside the ADK's packages:
// node --conditions=@throughline/source runs.ts REPOSITORY EVENTS
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import process from "node:process";
import {
  type Fields,
  folder,
  history,
  newStore,
  ofOurs,
  outcome,
  sdk,
  type Service,
  type Session,
  targets,
  text,
} from "./setup.ts";

const { BaseLlm, FunctionTool, InMemorySessionService, LlmAgent, Runner } = sdk;

const [, events = "10000"] = process.argv.slice(2);

/** A model that says what it is told to. */
class ScriptedModel extends BaseLlm {
  readonly sent: unknown[] = [];
  readonly #replies: Fields[][];
  constructor(replies: Fields[][]) {
    super({ model: "scripted" });
    this.#replies = replies;
  }
  async *generateContentAsync(request: { readonly contents: unknown }): AsyncGenerator<Fields> {
    this.sent.push(structuredClone(request.contents));
    const parts = await Promise.resolve(this.#replies.shift() ?? [{ text: "nothing more" }]);
    yield {
      content: { role: "model", parts },
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 3, totalTokenCount: 13 },
    };
  }
}

const called = (name: string, args: Fields = {}): Fields => ({ functionCall: { name, args } });

/** A run with a tool that sets state, a transfer, and a confirmation in a second process. */
async function runAll(open: () => Service): Promise<readonly Fields[]> {
  const key = { appName: "app", userId: "u", sessionId: "run" };
  const charges: string[] = [];
  const runnerOf = (
    service: Service,
    first: Fields[][],
    second: Fields[][],
  ): { runAsync(request: Fields): AsyncIterable<Fields> } => {
    const clock = new FunctionTool({
      name: "clock",
      description: "the time",
      execute: (_input: unknown, context: { state: { set(name: string, value: unknown): void } }) => {
        context.state.set("asked", 1);
        context.state.set("user:language", "de");
        context.state.set("temp:run", true);
        return { time: "9:00" };
      },
    });
    const charge = new FunctionTool({
      name: "charge",
      description: "charges 5 EUR",
      requireConfirmation: true,
      execute: () => ({ charged: charges.push("5 EUR") }),
    });
    const cashier = new LlmAgent({
      name: "cashier",
      description: "charges",
      model: new ScriptedModel(second),
      tools: [charge],
    });
    const agent = new LlmAgent({
      name: "teller",
      model: new ScriptedModel(first),
      tools: [clock],
      subAgents: [cashier],
    });
    return new Runner({ appName: "app", agent, sessionService: service });
  };
  const say = async (runner: { runAsync(request: Fields): AsyncIterable<Fields> }, part: Fields): Promise<Fields[]> =>
    Array.fromAsync(runner.runAsync({ userId: "u", sessionId: "run", newMessage: { role: "user", parts: [part] } }));
  const service = open();
  await service.createSession(key);
  const runner = runnerOf(
    service,
    [[called("clock")], [called("transfer_to_agent", { agentName: "cashier" })]],
    [[{ text: "I am the cashier." }], [called("charge")]],
  );
  await say(runner, { text: "What time is it? Then to the cashier." });
  const asked = await say(runner, { text: "Charge me." });
  const request = asked
    .flatMap(({ content }) => (content as { parts?: Fields[] } | undefined)?.parts ?? [])
    .map(({ functionCall }) => functionCall as Fields | undefined)
    .find((call) => call?.["name"] === "adk_request_confirmation");
  assert.equal(charges.length, 0);
  const later = runnerOf(open(), [], [[{ text: "Charged." }]]);
  const response = { id: request?.["id"], name: request?.["name"], response: { confirmed: true } };
  await say(later, { functionResponse: response });
  assert.deepEqual(charges, ["5 EUR"]);
  const session = await open().getSession(key);
  assert.deepEqual({ ...session?.state }, { asked: 1, "user:language": "de" });
  return session?.events ?? [];
}

/** Without what is another one in every run. */
function outline(all: readonly Fields[]): readonly string[] {
  return all.map(({ author, content, actions }) => {
    const { transferToAgent, stateDelta } = actions as Fields;
    const parts = ((content as { parts?: Fields[] } | undefined)?.parts ?? []).map(
      ({ text: words, functionCall, functionResponse }) =>
        words ??
        (functionCall as Fields | undefined)?.["name"] ??
        JSON.stringify((functionResponse as Fields | undefined)?.["response"]),
    );
    return `${String(author)}: ${parts.join()} ${String(transferToAgent)} ${JSON.stringify(stateDelta)}`;
  });
}

const memory = new InMemorySessionService();
const wanted = outline(await runAll(() => memory));
const store = newStore();
const given = await runAll(() => ofOurs(store));
assert.deepEqual(outline(given), wanted);
process.stdout.write(`ok   a run with a tool, a transfer and a confirmation: ${wanted.length} events\n`);

const [{ ref } = { ref: null }] = (await store.list({ agentId: "main" })).sessions.filter(({ ref: { key } }) =>
  key.includes(":adk:"),
);
assert.ok(ref !== null);
const state = await store.load(ref);
const records = (await Array.fromAsync(store.read(ref))).flatMap((page) => [...page.records]);
const context = history.buildContext(records, { headId: state?.head.headId ?? null });
for (const target of targets.historyTargets.values())
  assert.deepEqual(target.validate(target.render(context).messages, context.model?.modelId ?? null), [], target.name);
process.stdout.write(`ok   ${targets.historyTargets.size} validators find nothing in its context\n`);

// A killed process: the event is stored, and app and user have not heard of it.
const key = { appName: "killed", userId: "u", sessionId: "s" };
const killedStore = newStore();
await ofOurs(killedStore).createSession(key);
const failing = new Proxy(killedStore, {
  get(target, name) {
    const member: unknown = Reflect.get(target, name, target);
    if (name === "save") return () => Promise.reject(new Error("killed"));
    return typeof member === "function" ? (member.bind(target) as unknown) : member;
  },
});
const broken = ofOurs(failing);
const session = (await broken.getSession(key)) as Session;
const event = text("x", { actions: { stateDelta: { a: 1, "app:b": 2, "user:c": 3 } } });
assert.equal(await outcome(broken.appendEvent({ session, event })), "killed");
const repaired = (await ofOurs(killedStore).getSession(key)) as Session;
assert.deepEqual({ ...repaired.state }, { a: 1, "app:b": 2, "user:c": 3 });
assert.equal(repaired.events.length, 1);
process.stdout.write("ok   state of an app and a user that a killed process left behind\n");

// What an append costs, by calls of the store.
const calls = new Map<string, number>();
const counting = new Proxy(newStore(), {
  get(target, name) {
    const member: unknown = Reflect.get(target, name, target);
    if (typeof member !== "function" || typeof name !== "string") return member;
    return (...args: unknown[]): unknown => {
      calls.set(name, (calls.get(name) ?? 0) + 1);
      return Reflect.apply(member, target, args) as unknown;
    };
  },
});
const counted = ofOurs(counting);
const long = { appName: "long", userId: "u", sessionId: "s" };
const run = await counted.createSession(long);
calls.clear();
const total = Number(events);
const began = performance.now();
let tenth = 0;
for (let at = 0; at < total; at++) {
  if (at === Math.floor(total / 10)) tenth = performance.now();
  await counted.appendEvent({ session: run, event: text(`event ${at}`) });
}
const ended = performance.now();
assert.equal(calls.get("append"), total);
assert.equal(calls.get("load"), total);
assert.ok((calls.get("read") ?? 0) <= 1);
const read = (await ofOurs(counting).getSession(long)) as Session;
assert.equal(read.events.length, total);
const ms = (from: number, to: number, of: number): string => ((to - from) / of).toFixed(2);
process.stdout.write(
  `ok   ${total} events: one append and one load each, ${calls.get("read") ?? 0} reads; ` +
    `${ms(began, tenth, total / 10)} ms an event at first, ${ms(tenth, ended, total * 0.9)} later\n`,
);
rmSync(folder, { recursive: true, force: true });
