import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Embedder, redactRecords, type SessionStore } from "@throughline/core";
import { type EmbeddingServer, startEmbeddingServer } from "@throughline/test-kit/embedding-server";
import { until } from "@throughline/test-kit";
import {
  askFor,
  budgetOf,
  converse,
  embedderAt,
  filled,
  indexOver,
  message,
  refOf,
  removeFolder,
  storeKinds,
  vectorsOf,
} from "./meaning-scene.ts";

let server: EmbeddingServer;
beforeAll(async () => void (server = await startEmbeddingServer()));
beforeEach(async () => {
  await server.control({});
  await server.received();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  removeFolder();
});

const scope = { namespace: "", agentId: "main" };
const turn = (number: number): readonly [string, string] => [`Question ${number}?`, `Answer ${number}.`];
const turns = (count: number): readonly (readonly [string, string])[] =>
  Array.from({ length: count }, (_, number) => turn(number));

async function textsReceived(): Promise<readonly string[]> {
  return (await server.received()).flatMap(({ body }) => body["input"] as readonly string[]);
}

async function withTurns(open: () => SessionStore, count: number): Promise<SessionStore> {
  const store = open();
  await converse(store, refOf("one"), turns(count));
  return store;
}

describe.each(storeKinds)("the filling of vectors over %s", (_name, open) => {
  it("sends each exchange once, in batches of at most 64", async () => {
    await using store = await withTurns(open, 150);
    const index = indexOver(store, embedderAt(server.url));
    expect(await index.lag()).toBe(300);
    expect(await filled(index)).toBe(0);
    const requests = await server.received();
    const sizes = requests.map(({ body }) => (body["input"] as readonly string[]).length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(64);
    const texts = requests.flatMap(({ body }) => body["input"] as readonly string[]);
    expect(new Set(texts).size).toBe(texts.length);
    expect(texts).toHaveLength(150);
    expect(texts).toContain("Question 7?\nAnswer 7.");
    expect(await index.lag()).toBe(0);
    await filled(index);
    expect(await textsReceived()).toEqual([]);
  });

  it("sends only what is new when a session grows, and the last exchange again only when it grew", async () => {
    await using store = await withTurns(open, 3);
    const index = indexOver(store, embedderAt(server.url));
    await filled(index);
    await textsReceived();
    await converse(store, refOf("one"), [turn(3)]);
    await filled(index);
    expect(await textsReceived()).toEqual(["Question 3?\nAnswer 3."]);
    await store.append(refOf("one"), [message("assistant", "And more.")]);
    await filled(index);
    expect(await textsReceived()).toEqual(["Question 3?\nAnswer 3.\nAnd more."]);
  });

  it("asks what is pending once for many sessions and batches, not for each", async () => {
    await using store = open();
    for (let number = 0; number < 12; number++) await converse(store, refOf(`s${number}`), [turn(number)]);
    await converse(store, refOf("long"), turns(150));
    let asked = 0;
    const facet = vectorsOf(store);
    const vectors = {
      put: facet.put.bind(facet),
      pending: (...given: Parameters<typeof facet.pending>) => ((asked += 1), facet.pending(...given)),
    };
    const index = indexOver(store, embedderAt(server.url), { vectors: { ...facet, ...vectors } });
    const left = await Array.fromAsync(index.fill());
    expect([left.at(0), left.at(-1)]).toEqual([324, 0]);
    expect(left.length).toBeGreaterThan(14);
    expect(asked).toBe(2);
  });

  it("fills old and archived sessions too", async () => {
    await using store = await withTurns(open, 1);
    await converse(store, refOf("old"), [["An old question?", "An old answer."]]);
    await store.move(refOf("old"), { kind: "archive" });
    await filled(indexOver(store, embedderAt(server.url)));
    expect(await textsReceived()).toEqual(expect.arrayContaining(["An old question?\nAn old answer."]));
  });

  it("leaves the exchange of an open turn, and takes it when the turn is closed", async () => {
    await using store = await withTurns(open, 1);
    const ref = refOf("one");
    const until = Date.now() + 60_000;
    const turnFields = { turnId: "t", owner: "test", leaseUntilMs: until, fence: 1 };
    await store.append(ref, [message("user", "And now?")], { turn: { action: "open", ...turnFields } });
    const index = indexOver(store, embedderAt(server.url));
    expect(await filled(index)).toBe(1);
    expect(await textsReceived()).toEqual(["Question 0?\nAnswer 0."]);
    await store.append(ref, [message("assistant", "Now this.")], { turn: { action: "close", ...turnFields } });
    expect(await filled(index)).toBe(0);
    expect(await textsReceived()).toEqual(["And now?\nNow this."]);
  });

  it("sends the head of an output, and long texts in parts of at most 2,000 characters", async () => {
    await using store = await withTurns(open, 0);
    const ref = refOf("one");
    const output = `head ${"x".repeat(5000)} tail`;
    await store.append(ref, [
      message("user", "a".repeat(3000)),
      {
        type: "message",
        message: { role: "toolResult", toolCallId: "c", toolName: "read", content: [{ type: "text", text: output }] },
      },
    ]);
    await filled(indexOver(store, { ...embedderAt(server.url), maxTokens: 8000 }));
    const texts = await textsReceived();
    expect(Math.max(...texts.map(({ length }) => length))).toBeLessThanOrEqual(2000);
    expect(texts.join("").match(/a/g)?.length).toBeGreaterThanOrEqual(3000);
    expect(texts.join("\n")).toContain("head x");
    expect(texts.join("\n")).not.toContain("tail");
  });

  it("cuts a text that the model refuses as too long, and keeps the others whole", async () => {
    await using store = await withTurns(open, 2);
    await converse(store, refOf("one"), [["b".repeat(900), "Short."]]);
    await server.control({ mostCharacters: 500 });
    const index = indexOver(store, embedderAt(server.url));
    expect(await filled(index)).toBe(0);
    expect(await index.lag()).toBe(0);
    expect(await textsReceived()).toContain("Question 0?\nAnswer 0.");
  });

  it("throws away a batch whose text is redacted while the embedder works", async () => {
    await using store = await withTurns(open, 2);
    await converse(store, refOf("one"), [["The password is swordfish?", "Yes."]]);
    const embedder = embedderAt(server.url);
    const started = Promise.withResolvers<void>();
    const redacted = Promise.withResolvers<void>();
    const waiting: Embedder = {
      ...embedder,
      embed: async (texts, options) => {
        started.resolve();
        await redacted.promise;
        return embedder.embed(texts, options);
      },
    };
    const filling = indexOver(store, waiting).fill();
    await filling.next();
    const step = filling.next();
    await started.promise;
    let id = "";
    for await (const { records } of store.read(refOf("one"))) id = records[4]?.id ?? id;
    await redactRecords(store, refOf("one"), [id], { reason: "secret" });
    redacted.resolve();
    expect((await step).value).toBeGreaterThanOrEqual(6);
    const [vector = new Float32Array()] = await embedder.embed(["swordfish password"], { kind: "query" });
    expect(await vectorsOf(store).nearest({ ...scope, model: embedder.id, vector })).toEqual([]);
    await textsReceived();
    for await (const left of filling) if (left === 0) break;
    expect((await textsReceived()).join("\n")).not.toContain("swordfish");
  });

  it("goes with a redaction and a purge: nothing near is found any more", async () => {
    await using store = await withTurns(open, 1);
    await converse(store, refOf("trip"), [["Where?", "We rented bicycles."]]);
    const index = indexOver(store, embedderAt(server.url));
    await filled(index);
    expect((await askFor(store, index, "hire cycling")).places[0]).toBe("trip#1");
    let id = "";
    for await (const { records } of store.read(refOf("trip"))) id = records[1]?.id ?? id;
    await redactRecords(store, refOf("trip"), [id], { reason: "test" });
    const after = await askFor(store, index, "hire cycling");
    expect(after.places).not.toContain("trip#1");
    await filled(index);
    await store.remove(refOf("trip"), { purge: true });
    expect((await askFor(store, index, "hire cycling")).content).not.toContain("trip");
  });

  it("keeps the vectors of the old model in use until the new ones are complete, and then deletes them", async () => {
    await using store = await withTurns(open, 100);
    await converse(store, refOf("trip"), [["Where?", "We rented bicycles."]]);
    const [old, renewed] = [embedderAt(server.url, "old"), embedderAt(server.url, "renewed")];
    await filled(indexOver(store, old));
    const index = indexOver(store, renewed, { before: old });
    const filling = index.fill();
    for (let step = 0; step < 2; step++) await filling.next();
    expect(await index.lag()).toBeGreaterThan(0);
    expect(await askFor(store, index, "hire cycling")).toMatchObject({
      isWhole: true,
      places: expect.arrayContaining(["trip#1"]),
    });
    expect((await vectorsOf(store).pending(scope, { model: renewed.id })).hasOthers).toBe(true);
    for await (const _left of filling);
    expect((await vectorsOf(store).pending(scope, { model: renewed.id })).hasOthers).toBe(false);
    expect(await askFor(store, index, "hire cycling")).toMatchObject({
      isWhole: true,
      places: expect.arrayContaining(["trip#1"]),
    });
  });

  it("stops at the tokens of a day, and states what a backfill would cost without asking the embedder", async () => {
    await using store = await withTurns(open, 300);
    const index = indexOver(store, embedderAt(server.url), { budget: budgetOf(500) });
    const estimate = await index.estimate(AbortSignal.timeout(10_000));
    expect(await textsReceived()).toEqual([]);
    expect(estimate.records).toBe(600);
    expect(estimate.tokens).toBeGreaterThan(1500);
    expect(estimate.tokens).toBeLessThan(4000);
    expect(await filled(index)).toBeGreaterThan(0);
    const sent = (await textsReceived()).join("").length / 3;
    expect(sent).toBeLessThan(700);
  });

  it("works behind the log: an append and a search wait for no embedder, and the fill begins in quiet time", async () => {
    await using store = await withTurns(open, 1);
    const index = indexOver(store, embedderAt(server.url));
    await server.control({ slowMs: 300 });
    index.poke();
    const startedMs = performance.now();
    await converse(store, refOf("one"), [turn(1)]);
    expect(performance.now() - startedMs).toBeLessThan(250);
    expect(await textsReceived()).toEqual([]);
    await until(async () => (await index.lag()) === 0);
    await index.close();
  });

  it("reports a failing embedder once, and goes on later from where it was", async () => {
    await using store = await withTurns(open, 3);
    const notes: string[] = [];
    await server.control({ fault: "500" });
    const index = indexOver(store, embedderAt(server.url), { onNote: (note) => notes.push(note) });
    index.poke();
    await until(() => notes.length > 0);
    expect(notes).toEqual([expect.stringMatching(/^Vectors .* are not filled at the moment: .* status 500/)]);
    expect(await index.lag()).toBe(6);
    await server.control({});
    expect(await filled(index)).toBe(0);
    await index.close();
  });
});
