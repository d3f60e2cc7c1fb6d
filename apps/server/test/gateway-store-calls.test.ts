import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { redactRecords, type SessionRef, type SessionStore, type StoredRecord } from "@throughline/core";
import { resetSession } from "@throughline/core/internal";
import { createPostgresStore } from "@throughline/store-postgres";
import { type PostgresServer, startPostgres } from "../../../packages/store-postgres/test/postgres-server.ts";
import { type GatewayServing, serveGateway, sha256 } from "./gateway-serving.ts";

let postgres: PostgresServer;
let store: SessionStore;
/** What the gateway asked the store for, since it was looked at. */
let asked: string[] = [];
/** How long what is asked of the store takes at least, by its name. */
let delays: Readonly<Record<string, number>> = {};
const gateways: GatewayServing[] = [];

beforeAll(async () => {
  const started = await startPostgres();
  if ("unavailable" in started) throw new Error(started.unavailable);
  postgres = started;
  store = createPostgresStore({ url: postgres.url, notify: false });
}, 120_000);
afterEach(async () => {
  delays = {};
  for (const gateway of gateways.splice(0)) await gateway.close();
});
afterAll(async () => {
  await store?.close();
  await postgres?.stop();
}, 120_000);

/** Each is one statement, which `round-trips.test.ts` of the store proves. */
const operations = new Set(["load", "save", "append", "read", "readWindow", "list", "remove"]);
const placesOf: ReadonlyMap<string, string> = new Map([
  ["", "session"],
  ["throughline.gateway", "note"],
]);

/** The same store, which notes what is asked of sessions and of the gateway's notes. */
function watched(inner: SessionStore): SessionStore {
  return new Proxy(inner, {
    get(target, name: string) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...args: readonly unknown[]): unknown => {
        const call = (): unknown => Reflect.apply(member, target, args) as unknown;
        const place = placesOf.get((args[0] as SessionRef | undefined)?.namespace ?? "");
        if (!operations.has(name) || place === undefined) return call();
        const what = `${name} ${place}`;
        asked.push(what);
        const ms = delays[what] ?? 0;
        return ms === 0 ? call() : new Promise((resolve) => setTimeout(resolve, ms)).then(call);
      };
    },
  });
}

async function serveHere(): Promise<GatewayServing> {
  const openStore = (): SessionStore => watched(createPostgresStore({ url: postgres.url, notify: false }));
  const gateway = await serveGateway({ fallback: () => `Answer ${++answers}.` }, { openStore });
  gateways.push(gateway);
  return gateway;
}

let answers = 0;

interface Said {
  readonly role: string;
  readonly content: string;
}

/** A conversation that nothing names. */
class Conversation {
  readonly history: Said[] = [];
  /** Of its calls. */
  readonly bodies: string[] = [];
  readonly #token: string;
  /** Makes its bodies different from those of others that say the same. */
  readonly #size: number;

  constructor(token: string, size: number) {
    this.#token = token;
    this.#size = size;
  }

  /** Says one thing more. Resolves with the name of the session in the answer. */
  async say(content: string, { url }: GatewayServing): Promise<string | null> {
    this.history.push({ role: "user", content });
    const body = JSON.stringify({ model: "claude-opus-5", max_tokens: this.#size, messages: this.history });
    const answer = await fetch(`${url}/anthropic/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": this.#token, "anthropic-version": "2023-06-01" },
      body,
    });
    const reply = (await answer.json()) as { readonly content: readonly { readonly text: string }[] };
    this.history.push({ role: "assistant", content: reply.content.map(({ text }) => text).join("") });
    this.bodies.push(body);
    return answer.headers.get("throughline-session");
  }

  /** Resolves with the keys of the sessions that have the last answer, once it is stored. */
  async stored(): Promise<readonly string[]> {
    const last = this.history.at(-1)?.content ?? "";
    for (let waitedMs = 0; waitedMs < 20_000; waitedMs += 50) {
      const found: string[] = [];
      for (const key of await sessionKeys()) if (JSON.stringify(await recordsOf(key)).includes(last)) found.push(key);
      if (found.length > 0) return found;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${last} was not stored.`);
  }
}

async function sessionKeys(): Promise<readonly string[]> {
  const { sessions } = await store.list({ namespace: "", limit: 1000 });
  return sessions.map(({ ref }) => ref.key);
}

async function recordsOf(key: string): Promise<readonly StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const page of store.read({ namespace: "", agentId: "main", key })) records.push(...page.records);
  return records;
}

/** What a call asked for, once nothing of it is left to be stored. */
async function operationsOf(work: () => Promise<unknown>): Promise<readonly string[]> {
  asked = [];
  await work();
  for (let count = -1; count !== asked.length;) {
    count = asked.length;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  return asked.toSorted();
}

let size = 100;
const converse = ({ token }: GatewayServing): Conversation => new Conversation(token, size++);

const goesOn = ["append session", "load session"];
/** @param isFirst whether this process knows no other conversation that begins alike */
const begins = (isFirst: boolean): readonly string[] =>
  ["append session", ...(isFirst ? ["load note"] : []), "save note", "save note", "save session"].toSorted();

describe("what a call asks the store for", () => {
  it("is five statements where a conversation begins, and two where it goes on", { tags: ["slow"] }, async () => {
    const gateway = await serveHere();
    const one = converse(gateway);
    expect(await operationsOf(() => one.say("A question of its own.", gateway))).toEqual(begins(true));
    for (const text of ["And then?", "And after that?"])
      expect(await operationsOf(() => one.say(text, gateway))).toEqual(goesOn);
    expect(await one.stored()).toHaveLength(1);
  });

  it("does not grow with the conversations that began with the same words", { tags: ["slow"] }, async () => {
    const gateway = await serveHere();
    const before = await sessionKeys();
    const others = Array.from({ length: 18 }, () => converse(gateway));
    await operationsOf(async () => {
      for (const one of others) await one.say("Read the file.", gateway);
    });
    const last = converse(gateway);
    expect(await operationsOf(() => last.say("Read the file.", gateway))).toEqual(begins(false));
    expect(await operationsOf(() => last.say("And now?", gateway))).toEqual(goesOn);
    expect((await sessionKeys()).length - before.length).toBe(19);
  });

  it(
    "has no look for other nodes behind examples of the client's own, once there is a session with them",
    { tags: ["slow"] },
    async () => {
      const gateway = await serveHere();
      const behind = (): Conversation => {
        const one = converse(gateway);
        one.history.push({ role: "user", content: "1 + 1" }, { role: "assistant", content: "It is 2." });
        return one;
      };
      const first = behind();
      await first.say("2 + 2", gateway);
      await first.stored();
      const asked = await operationsOf(() => behind().say("3 + 3", gateway));
      expect(asked).toEqual(goesOn);
    },
  );

  it(
    "is two statements where a response is followed by its id, or a client names its session",
    { tags: ["slow"] },
    async () => {
      const gateway = await serveHere();
      const send = async (path: string, body: object, headers = {}): Promise<{ readonly id: string }> => {
        const answer = await fetch(`${gateway.url}/${path}`, {
          method: "POST",
          headers: { authorization: `Bearer ${gateway.token}`, ...headers },
          body: JSON.stringify(body),
        });
        return (await answer.json()) as { readonly id: string };
      };
      const ask = (input: string, more: object): Promise<{ readonly id: string }> =>
        send("openai/v1/responses", { model: "gpt-6", input, ...more });
      const { id } = await ask("One response", {});
      await operationsOf(async () => {});
      // Each reply has an id that leads to its session.
      const more = { previous_response_id: id };
      expect(await operationsOf(() => ask("Another", more))).toEqual([...goesOn, "save note"]);
      const messages: Said[] = [{ role: "user", content: "Hello" }];
      const named = (): Promise<unknown> =>
        send("anthropic/v1/messages", { model: "m", max_tokens: 9, messages }, { "x-claude-code-session-id": "cc-1" });
      expect(await operationsOf(named)).toEqual([...goesOn, "save session"].toSorted());
      messages.push({ role: "user", content: "Are you there?" });
      expect(await operationsOf(named)).toEqual(goesOn);
    },
  );
});

it("asks the store for nothing before its answer ends, and names its session", { tags: ["slow"] }, async () => {
  const gateway = await serveHere();
  const one = converse(gateway);
  for (const content of ["What is first?", "And second?"]) {
    gateway.simulator.enqueue({ kind: "answer", content: "It takes its time.", eventDelayMs: 20 });
    asked = [];
    one.history.push({ role: "user", content });
    const answer = await fetch(`${gateway.url}/anthropic/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": gateway.token, "anthropic-version": "2023-06-01" },
      body: JSON.stringify({ model: "claude-opus-5", max_tokens: 9, stream: true, messages: one.history }),
    });
    expect(asked).toEqual([]);
    await answer.text();
    one.history.push({ role: "assistant", content: "It takes its time." });
    const [stored = ""] = await one.stored();
    expect(answer.headers.get("throughline-session")).toBe(stored);
    // The question has the time of the request, although both were stored together.
    const [said, heard] = (await recordsOf(stored)).filter(({ id }) => id.startsWith("m")).slice(-2);
    expect(said?.tsMs).toBeLessThan((heard?.tsMs ?? 0) - 20);
  }
});

describe("the name of the session", () => {
  it("is the same for the next call while the store has neither", { tags: ["slow"] }, async () => {
    const gateway = await serveHere();
    const one = converse(gateway);
    delays = { "append session": 300, "load note": 300, "save note": 300, "save session": 300 };
    const first = await one.say("Quick.", gateway);
    expect(first).toContain("direct:");
    expect(await one.say("And quicker.", gateway)).toBe(first);
    expect(await one.stored()).toEqual([first]);
  });

  it(
    "comes with the answer of a conversation that goes on, however long the store takes",
    { tags: ["slow"] },
    async () => {
      const gateway = await serveHere();
      const one = converse(gateway);
      await one.say("Which way?", gateway);
      const [session] = await one.stored();
      delays = { "append session": 400, "load session": 400, "load note": 400, "save note": 400 };
      expect(await one.say("And then?", gateway)).toBe(session);
    },
  );

  it("does not wait for another conversation, whose last call is still being stored", { tags: ["slow"] }, async () => {
    const gateway = await serveHere();
    const [slow, quick] = [converse(gateway), converse(gateway)];
    for (const one of [slow, quick]) await one.say("A question.", gateway);
    await slow.stored();
    const [session] = await quick.stored();
    delays = { "append session": 600 };
    await slow.say("Its next call.", gateway);
    // It follows a call whose answer is not stored yet, so the choice of its session waits.
    const waiting = slow.say("And one more.", gateway);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(await quick.say("And here?", gateway)).toBe(session);
    await waiting;
  });
});

it(
  "has a session for each of many conversations that begin alike and go on before they are stored",
  { tags: ["slow"] },
  async () => {
    const gateway = await serveHere();
    const before = new Set(await sessionKeys());
    const all = Array.from({ length: 32 }, () => converse(gateway));
    delays = { "load note": 60, "save note": 60 };
    await Promise.all(
      all.map(async (one) => {
        for (const text of ["They begin alike.", "And go on."]) await one.say(text, gateway);
      }),
    );
    for (const one of all) await one.stored();
    expect((await sessionKeys()).filter((key) => !before.has(key))).toHaveLength(all.length);
  },
);

describe("a session that another process changes meanwhile", () => {
  const refOf = (key: string): SessionRef => ({ namespace: "", agentId: "main", key });

  it(
    "is the same session where two processes take turns, and every request is given back",
    { tags: ["slow"] },
    async () => {
      const [here, there] = [await serveHere(), await serveHere()];
      // A new process knows the token of the other.
      const one = converse(here);
      const keys = new Set<string>();
      for (const gateway of [here, here, there, there, here, there, here]) {
        await one.say(`Question ${one.bodies.length}.`, gateway);
        for (const each of await one.stored()) keys.add(each);
      }
      const [key = "", ...others] = keys;
      expect(others).toEqual([]);
      const { body } = await here.serving.ask("GET", `/sessions/${key}/calls?tail=500`, { token: here.token });
      const calls = body["items"] as readonly { readonly callId: string }[];
      const given: string[] = [];
      for (const { callId } of calls) {
        const call = { session: key, callId, attempt: 0, outcome: "answered", turnId: callId };
        given.push(sha256(await here.requestOf(call)));
      }
      expect(given).toEqual(one.bodies.map((body) => sha256(Buffer.from(body))));
    },
  );

  it(
    "is not joined by another conversation that begins alike while its first question is asked elsewhere",
    { tags: ["slow"] },
    async () => {
      const [here, there] = [await serveHere(), await serveHere()];
      const [one, other] = [converse(here), new Conversation(here.token, 8)];
      here.simulator.enqueue({ kind: "answer", content: [{ type: "text", text: "Slow as one." }], delayMs: 1500 });
      const slow = one.say("Both say this first.", here);
      const isAsked = async (): Promise<boolean> => {
        const all = await Promise.all((await sessionKeys()).map(recordsOf));
        return JSON.stringify(all).includes("Both say this first.");
      };
      await expect.poll(isAsked).toBe(true);
      await other.say("Both say this first.", there);
      await slow;
      const keys = [...(await one.stored()), ...(await other.stored())];
      expect([keys.length, new Set(keys).size]).toEqual([2, 2]);
    },
  );

  it("has a branch where both go on from the same reply", { tags: ["slow"] }, async () => {
    const [here, there] = [await serveHere(), await serveHere()];
    const one = converse(here);
    await one.say("Where to?", here);
    const keys = await one.stored();
    const other = new Conversation(here.token, 7);
    other.history.push(...one.history);
    await other.say("By ship.", there);
    expect(await other.stored()).toEqual(keys);
    await one.say("By train.", here);
    expect(await one.stored()).toEqual(keys);
    const records = await recordsOf(keys[0] ?? "");
    const parents = records
      .filter(({ record }) => /By (ship|train)/.test(JSON.stringify(record["message"] ?? null)))
      .map(({ parentId }) => parentId);
    expect([parents.length, new Set(parents).size]).toEqual([2, 1]);
  });

  it.each([
    ["purged", (ref: SessionRef) => store.remove(ref, { purge: true })],
    ["archived", (ref: SessionRef) => store.move(ref, { kind: "archive" })],
    ["reset", (ref: SessionRef) => resetSession(store, ref)],
  ] as const)(
    "is followed by another one where it was %s, and the call is stored whole",
    { tags: ["slow"] },
    async (_how, change) => {
      const here = await serveHere();
      const one = converse(here);
      for (const text of ["Shall we begin?", "And go on?"]) await one.say(text, here);
      const [session = ""] = await one.stored();
      await change(refOf(session));
      await one.say("And on?", here);
      const [key = "", ...others] = await one.stored();
      expect([key === session, others]).toEqual([false, []]);
      const texts = JSON.stringify(await recordsOf(key));
      for (const { content } of one.history) expect(texts).toContain(content);
    },
  );

  it("keeps nothing of what was redacted since its last call", async () => {
    const here = await serveHere();
    const one = converse(here);
    await one.say("The password is correct-horse.", here);
    const [session = ""] = await one.stored();
    const [record] = (await recordsOf(session)).filter(({ id }) => id.startsWith("m"));
    await redactRecords(store, refOf(session), [record?.id ?? ""], { reason: "a secret" });
    here.simulator.enqueue({ kind: "error", status: 400, message: "correct-horse is not allowed" });
    const answer = await fetch(`${here.url}/anthropic/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": here.token, "anthropic-version": "2023-06-01" },
      body: JSON.stringify({ model: "m", max_tokens: 9, messages: [...one.history, { role: "user", content: "So?" }] }),
    });
    expect(answer.status).toBe(400);
    await expect.poll(async () => (await recordsOf(session)).filter(({ id }) => id.startsWith("x-")).length).toBe(2);
    expect(JSON.stringify(await recordsOf(session))).not.toContain("correct-horse");
  });
});
