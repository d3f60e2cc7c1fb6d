// Runs beside the ADK's packages: node --conditions=@throughline/source sessions.ts REPOSITORY POSTGRES_URL EVENTS
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type { createAdkSessionService as CreateService } from "../../../packages/adapter-adk/src/index.ts";
import type { SessionStore } from "../../../packages/core/src/index.ts";
import type * as History from "../../../packages/history/src/index.ts";
import type { createSqliteStore as CreateSqlite } from "../../../packages/store-sqlite/src/index.ts";

const [repository = "", postgres = "", events = "10000"] = process.argv.slice(2);
type Fields = Record<string, unknown>;
type Module = Record<string, unknown>;
const ours = async (path: string): Promise<Module> =>
  (await import(pathToFileURL(join(repository, "packages", path)).href)) as Module;
const peer = createRequire(import.meta.url);
const adk = (await import(pathToFileURL(peer.resolve("@google/adk").replace("/cjs/", "/esm/")).href)) as Module;

const { createAdkSessionService } = (await ours("adapter-adk/src/index.ts")) as unknown as {
  createAdkSessionService: typeof CreateService;
};
const { createSqliteStore } = (await ours("store-sqlite/src/index.ts")) as unknown as {
  createSqliteStore: typeof CreateSqlite;
};
const history = (await ours("history/src/index.ts")) as unknown as typeof History;

interface Session {
  readonly id: string;
  readonly state: Fields;
  readonly events: Fields[];
  readonly lastUpdateTime: number;
}
interface Service {
  createSession(request: Fields): Promise<Session>;
  getSession(request: Fields): Promise<Session | undefined>;
  getOrCreateSession(request: Fields): Promise<Session>;
  listSessions(
    request: Fields,
  ): Promise<{ readonly sessions: Session[]; readonly totalItems: number; readonly totalPages: number }>;
  deleteSession(request: Fields): Promise<void>;
  appendEvent(request: { readonly session: Session; readonly event: Fields }): Promise<Fields>;
}
type Make<Made> = new (...given: unknown[]) => Made;
const {
  InMemorySessionService,
  DatabaseSessionService,
  BaseSessionService,
  createEvent,
  LlmAgent,
  Runner,
  BaseLlm,
  FunctionTool,
} = adk as unknown as {
  InMemorySessionService: Make<Service>;
  DatabaseSessionService: Make<Service>;
  BaseSessionService: abstract new () => Service;
  createEvent: (fields: Fields) => Fields;
  LlmAgent: Make<unknown>;
  Runner: Make<{ runAsync(request: Fields): AsyncIterable<Fields> }>;
  BaseLlm: Make<object>;
  FunctionTool: Make<unknown>;
};

const folder = mkdtempSync(join(tmpdir(), "throughline-adk-run-"));
let count = 0;
const newStore = (): SessionStore => createSqliteStore({ path: join(folder, `${(count += 1)}.db`), create: true });
const ofOurs = (store: SessionStore): Service => createAdkSessionService(BaseSessionService, { store });
const services: readonly (readonly [string, () => Promise<Service>])[] = [
  ["InMemory", () => Promise.resolve(new InMemorySessionService())],
  ...(postgres === "" ? [] : ([["Database", () => databaseService()]] as const)),
  ["ours", () => Promise.resolve(ofOurs(newStore()))],
];

async function databaseService(): Promise<Service> {
  const service = new DatabaseSessionService(postgres.replace(/^postgres:/, "postgresql:"));
  return Promise.resolve(service);
}

let apps = 0;
const text = (words: string, fields: Fields = {}): Fields =>
  createEvent({ invocationId: "i1", author: "user", content: { role: "user", parts: [{ text: words }] }, ...fields });
const wordsOf = ({ events: all }: Session): string =>
  all.map(({ content }) => ((content as { parts: { text?: string }[] }).parts[0]?.text ?? "").trim()).join(" ");
const outcome = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "done",
    (error: unknown) => (error as { code?: string }).code ?? (error as Error).message,
  );

interface Row {
  readonly about: string;
  /** Undefined: as in the ADK's own services. */
  readonly expected: Readonly<Record<string, string>>;
  run(
    service: Service,
    key: { readonly appName: string; readonly userId: string; readonly sessionId: string },
  ): Promise<string>;
}

const rows: readonly Row[] = [
  {
    about: "createSession with an id that exists",
    expected: {
      InMemory: "done 0",
      Database: "Session with id s already exists. 1",
      ours: "Session with id s already exists. 1",
    },
    run: async (service, key) => {
      const session = await service.createSession(key);
      await service.appendEvent({ session, event: text("kept") });
      const again = await outcome(service.createSession(key));
      return `${again} ${(await service.getSession(key))?.events.length}`;
    },
  },
  {
    about: "afterTimestamp equal to an event's time",
    expected: { InMemory: "b c", Database: "c", ours: "b c" },
    run: async (service, key) => {
      const session = await service.createSession(key);
      for (const [at, words] of ["a", "b", "c"].entries())
        await service.appendEvent({ session, event: text(words, { timestamp: Date.now() + 1000 + at }) });
      const timestamp = session.events[1]?.["timestamp"];
      return wordsOf((await service.getSession({ ...key, config: { afterTimestamp: timestamp } })) as Session);
    },
  },
  {
    about: "app: and user: in the state of createSession reach another session",
    expected: { InMemory: "{}", Database: '{"app:a":1,"user:b":2}', ours: '{"app:a":1,"user:b":2}' },
    run: async (service, key) => {
      await service.createSession({ ...key, state: { "app:a": 1, "user:b": 2, c: 3, "temp:d": 4 } });
      return JSON.stringify((await service.createSession({ ...key, sessionId: "other" })).state);
    },
  },
  {
    about: "state of an event reaches session, user and app; temp: goes",
    expected: {
      InMemory: '{"a":1,"app:b":2,"user:c":3} {"app:b":2}',
      Database: '{"a":1,"app:b":2,"user:c":3} {"app:b":2}',
      ours: '{"a":1,"app:b":2,"user:c":3} {"app:b":2}',
    },
    run: async (service, key) => {
      const session = await service.createSession(key);
      const actions = { stateDelta: { a: 1, "app:b": 2, "user:c": 3, "temp:d": 4 } };
      await service.appendEvent({ session, event: text("x", { actions }) });
      const sorted = (state: Fields | undefined): string =>
        JSON.stringify(Object.fromEntries(Object.entries(state ?? {}).toSorted()));
      const read = await service.getSession(key);
      const other = await service.createSession({ ...key, userId: "another", sessionId: "o" });
      return `${sorted(read?.state)} ${sorted(other.state)}`;
    },
  },
  {
    about: "an event with an earlier timestamp, and the time of the session",
    expected: { InMemory: "late early back", Database: "early late back", ours: "late early forth" },
    run: async (service, key) => {
      const session = await service.createSession(key);
      await service.appendEvent({ session, event: text("late", { timestamp: Date.now() + 2000 }) });
      const before = session.lastUpdateTime;
      await service.appendEvent({ session, event: text("early", { timestamp: Date.now() - 100_000 }) });
      const read = (await service.getSession(key)) as Session;
      return `${wordsOf(read)} ${read.lastUpdateTime < before - 1000 ? "back" : "forth"}`;
    },
  },
  {
    about: "a session object that another one has overtaken",
    expected: { InMemory: "done one two three", Database: "done one two three", ours: "SESSION_BUSY one two" },
    run: async (service, key) => {
      const first = await service.createSession(key);
      await service.appendEvent({ session: first, event: text("one", { timestamp: Date.now() + 1 }) });
      const second = (await service.getSession(key)) as Session;
      await service.appendEvent({ session: second, event: text("two", { timestamp: Date.now() + 10 }) });
      const third = await outcome(
        service.appendEvent({ session: first, event: text("three", { timestamp: Date.now() + 20 }) }),
      );
      return `${third} ${wordsOf((await service.getSession(key)) as Session)}`;
    },
  },
  {
    about: "an event with a known id",
    expected: { InMemory: "new last", Database: "new last", ours: "new last" },
    run: async (service, key) => {
      const session = await service.createSession(key);
      const event = text("old", { timestamp: Date.now() + 1 });
      await service.appendEvent({ session, event });
      await service.appendEvent({ session, event: text("last", { timestamp: Date.now() + 10 }) });
      const content = { role: "user", parts: [{ text: "new" }] };
      await service.appendEvent({ session, event: { ...event, content } });
      await service.appendEvent({ session, event: { ...event, content } });
      return wordsOf((await service.getSession(key)) as Session);
    },
  },
  {
    about: "an event for a session that does not exist",
    expected: {
      InMemory: "done",
      Database: "Session gone not found for appendEvent",
      ours: "Session gone not found for appendEvent",
    },
    run: async (service, key) => {
      const session = await service.createSession(key);
      return outcome(service.appendEvent({ session: { ...session, id: "gone" }, event: text("lost") }));
    },
  },
  {
    about: "lists, pages, numRecentEvents, deletion",
    expected: { InMemory: "3 2 2 b c undefined 2", Database: "3 2 2 b c undefined 2", ours: "3 2 2 b c undefined 2" },
    run: async (service, key) => {
      for (const sessionId of ["1", "2"]) await service.createSession({ ...key, sessionId });
      const session = await service.getOrCreateSession(key);
      for (const [at, words] of ["a", "b", "c"].entries())
        await service.appendEvent({ session, event: text(words, { timestamp: Date.now() + at }) });
      const recent = (await service.getSession({ ...key, config: { numRecentEvents: 2 } })) as Session;
      const all = await service.listSessions({ appName: key.appName });
      const page = await service.listSessions({
        appName: key.appName,
        userId: key.userId,
        limit: 2,
        page: 1,
        order: "desc",
      });
      await service.deleteSession(key);
      const read = await service.getSession(key);
      const left = await service.listSessions({ appName: key.appName });
      return `${all.totalItems} ${page.sessions.length} ${page.totalPages} ${wordsOf(recent)} ${read} ${left.totalItems}`;
    },
  },
  {
    about: "hostile names",
    expected: { InMemory: "6 of 6", Database: "4 of 6", ours: "6 of 6" },
    run: async (service, key) => {
      const names = ["__proto__", "../x", "a:b", "x".repeat(200), "🦉", " "];
      const kept = names.map(async (name) => {
        const own = { appName: `${key.appName}${name}`, userId: name, sessionId: name };
        const session = await service.createSession(own);
        await service.appendEvent({ session, event: text(name, { actions: { stateDelta: { [name]: name } } }) });
        const read = await service.getSession(own);
        return read !== undefined && wordsOf(read) === name.trim() && Object.keys(read.state).join() === name;
      });
      const found = await Promise.allSettled(kept);
      return `${found.filter((one) => one.status === "fulfilled" && one.value).length} of ${names.length}`;
    },
  },
];

let failures = 0;
for (const { about, expected, run } of rows)
  for (const [name, open] of services) {
    apps += 1;
    const found = await run(await open(), { appName: `app${apps}`, userId: "u", sessionId: "s" });
    const isExpected = found === expected[name];
    if (!isExpected) failures += 1;
    process.stdout.write(`${isExpected ? "ok  " : "FAIL"} ${name}: ${about}: ${found}\n`);
  }

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
for (const target of history.historyTargets.values())
  assert.deepEqual(target.validate(target.render(context).messages, context.model?.modelId ?? null), [], target.name);
process.stdout.write(`ok   ${history.historyTargets.size} validators find nothing in its context\n`);

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
process.stdout.write(`adk: ${rows.length} rows on ${services.length} services, ${failures} failures\n`);
process.exit(failures === 0 ? 0 : 1);
