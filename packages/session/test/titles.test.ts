import { describe, expect, it } from "vitest";
import { redactRecords, type SessionEntry, type Summarizer, type SummaryRequest } from "@throughline/core";
import { createSessions } from "@throughline/session";
import { createAgentSessions } from "@throughline/session/whole-turn";
import { createMemoryStore } from "@throughline/store-memory";
import { createChatSummarizer } from "@throughline/summarizer-providers";
import { aroundCalls } from "@throughline/test-kit";
import { createScriptedModel } from "./scripted-model.ts";
import { allRecords, createFixture, key, modelId } from "./session-fixture.ts";

const ref = { namespace: "", agentId: "main", key };
const question = "Can you please fix the login bug in /home/ada/app/src/auth/login.ts?";
const byRules = "Fix the login bug in login.ts";

const titleOf = ({ title, titleBy }: SessionEntry): readonly unknown[] => [title, titleBy];

describe("the title by rules", () => {
  it("is stored with the end of the first turn that is done, by no write of its own", async () => {
    const inner = createMemoryStore();
    const writes: string[] = [];
    const store = aroundCalls(inner, ({ name, run }) => {
      if (name === "append" || name === "save") writes.push(name);
      return run();
    });
    const writesOf = async (titles: "rules" | "off"): Promise<number> => {
      const { sessions } = createFixture({ store, titles });
      await using session = await sessions.open(`of ${titles}`);
      writes.length = 0;
      await session.runTurn(question);
      expect(session.title).toBe(titles === "off" ? null : byRules);
      return writes.length;
    };
    expect([await writesOf("rules"), await writesOf("off")]).toEqual([2, 2]);
  });

  it("waits for a turn that is done, and for a message that yields one", async () => {
    const { sessions, model, store } = createFixture();
    await using session = await sessions.open(key);
    model.push("Hello.", { error: new Error("overloaded") });
    await session.runTurn("hi");
    await expect(session.runTurn(question)).rejects.toMatchObject({ code: "MODEL_FAILED" });
    expect(session.title).toBeNull();
    await session.resume();
    expect(titleOf((await store.load(ref))?.entry ?? { sessionId: "" })).toEqual([byRules, "rules"]);
    await session.runTurn("Write a poem about ships instead.");
    expect(session.title).toBe(byRules);
  });

  it("leaves a title and a label that the session has", async () => {
    const { sessions, store } = createFixture();
    await store.save(ref, { sessionId: "s1", title: "Imported", titleBy: "import" }, { ifRevision: null });
    await using session = await sessions.open(key);
    await session.rename("Mine");
    await session.runTurn(question);
    const row = await sessions.find(key);
    expect([row?.label, row?.title, row?.titleBy, row?.name]).toEqual(["Mine", "Imported", "import", "Mine"]);
    await session.rename("");
    expect((await sessions.find(key))?.name).toBe("Imported");
    await expect(session.rename(5 as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
  });

  it("goes with a reset and a redaction, and the next turn makes one of what is left", async () => {
    const { sessions, store } = createFixture();
    await using session = await sessions.open(key);
    await session.runTurn(question);
    const [first] = (await session.transcript()).messages;
    await redactRecords(store, ref, [first?.recordId ?? ""], { reason: "asked for" });
    await session.refresh();
    expect(session.title).toBeNull();
    await session.runTurn("Write a poem about ships.");
    expect(session.title).toBe("Write a poem about ships");
    await session.reset();
    expect(session.title).toBeNull();
  });
});

describe("a redaction while the model answers", () => {
  it("leaves no title of the erased text", async () => {
    const { sessions, model, store } = createFixture();
    await using session = await sessions.open(key);
    model.push(() => {
      const after = redactFirst();
      return { text: "Done.", after };
    });
    const redactFirst = async (): Promise<void> => {
      const [first] = (await session.transcript()).messages;
      await redactRecords(store, ref, [first?.recordId ?? ""], { reason: "asked for" });
    };
    await session.runTurn(question);
    expect(titleOf((await store.load(ref))?.entry ?? { sessionId: "" })).toEqual([undefined, undefined]);
    expect(session.title).toBeNull();
  });

  it("takes a title that was stored between the redaction and its note", async () => {
    const inner = createMemoryStore();
    let endOfTurn: Promise<unknown> = Promise.resolve();
    let release = (): void => {};
    const store = aroundCalls(inner, ({ name, args, run }) => {
      if (name !== "append" || !JSON.stringify(args[1]).includes("summary-outdated")) return run();
      release();
      return endOfTurn.then(run);
    });
    const { sessions, model } = createFixture({ store: inner });
    await using session = await sessions.open(key);
    const isAsked = Promise.withResolvers<undefined>();
    const mayAnswer = new Promise<undefined>((resolve) => (release = () => resolve(undefined)));
    model.push(() => {
      isAsked.resolve(undefined);
      return { text: "Done.", after: mayAnswer };
    });
    endOfTurn = session.runTurn(question);
    await isAsked.promise;
    const [first] = (await session.transcript()).messages;
    await redactRecords(store, ref, [first?.recordId ?? ""], { reason: "asked for" });
    expect(titleOf((await inner.load(ref))?.entry ?? { sessionId: "" })).toEqual([undefined, undefined]);
  });
});

interface Asked {
  readonly title: string | null;
  readonly titleBy: unknown;
  readonly requests: readonly SummaryRequest[];
}

async function titleBy(
  summarize: (request: SummaryRequest) => Promise<string>,
  during: (store: ReturnType<typeof createMemoryStore>) => Promise<unknown> = () => Promise.resolve(),
): Promise<Asked> {
  const requests: SummaryRequest[] = [];
  const summarizer: Summarizer = {
    summarize: async (request) => {
      requests.push(request);
      return { summary: await summarize(request), source: "test", usage: null };
    },
  };
  const store = createMemoryStore();
  const chat = createScriptedModel("a".repeat(5000));
  const model = { chat, modelId, windowTokens: 200_000 };
  const sessions = createAgentSessions({ store, model, summarizers: [summarizer], titles: "model" });
  const session = await sessions.open(key);
  await session.runTurn(question + " x".repeat(2000));
  await during(store);
  await session.runTurn("And now?");
  await new Promise((resolve) => setImmediate(resolve));
  await sessions.close();
  const entry = (await store.load(ref))?.entry;
  return { title: entry?.title ?? null, titleBy: entry?.titleBy, requests };
}

describe("the title by a model", () => {
  it("is asked for once, with bounds, and replaces that of the rules", async () => {
    const { title, titleBy: by, requests } = await titleBy(() => Promise.resolve('"Repair of the login"\n'));
    expect([title, by]).toEqual(["Repair of the login", "model"]);
    expect(requests).toHaveLength(1);
    const [{ text, maxOutputTokens, instruction }] = requests as readonly [SummaryRequest];
    expect([maxOutputTokens, text.length]).toEqual([24, "User: \n\nAssistant: ".length + 3000]);
    expect(instruction).toContain("title");
  });

  it.each([
    ["fails", () => Promise.reject(new Error("overloaded"))],
    ["writes a summary", () => Promise.resolve("Topics: login.\nDecisions: none.")],
    ["writes too much", () => Promise.resolve("word ".repeat(60))],
    ["never answers", () => new Promise<string>(() => {})],
  ])("stays that of the rules when the model %s", async (_how, summarize) => {
    const { title, titleBy: by, requests } = await titleBy(summarize);
    expect([title, by, requests.length]).toEqual([byRules, "rules", 1]);
  });

  it("does not come back after a redaction of what the model was given", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const { title, requests } = await titleBy(
      ({ text }) => (text.includes("login") ? promise : Promise.resolve("What is left")),
      async (store) => {
        const ids = (await allRecords(store)).filter(({ type }) => type === "message").map(({ id }) => id);
        await redactRecords(store, ref, ids, { reason: "asked for" });
        resolve("Repair of the login");
      },
    );
    expect([title, requests.length]).toEqual(["What is left", 2]);
  });

  it("needs a summarizer", () => {
    const store = createMemoryStore();
    const model = { chat: createScriptedModel(), modelId };
    expect(() => createSessions({ store, model, titles: "model" })).toThrow(/no summarizer/);
    expect(() => createAgentSessions({ store, model, summarizers: [], titles: "model" })).toThrow(/titles is "model"/);
    expect(() => createSessions({ store, model, titles: "own" as never })).toThrow(/titles/);
  });

  it("is written by a chat model with its own instruction, and not by the conversation's model", async () => {
    const store = createMemoryStore();
    const titles = createScriptedModel("Repair of the login");
    const summarizers = [createChatSummarizer({ model: { chat: titles, modelId, windowTokens: 200_000 } })];
    const model = { chat: createScriptedModel("Done."), modelId, windowTokens: 200_000 };
    const sessions = createAgentSessions({ store, model, summarizers, titles: "model" });
    const session = await sessions.open(key);
    await session.runTurn(question);
    // The reports of usage count the call with those of the turn.
    await expect.poll(async () => (await sessions.usage()).total.calls).toBe(2);
    await sessions.close();
    expect(titles.requests).toHaveLength(1);
    const counted = (await allRecords(store)).filter(({ type }) => type === "usage");
    expect(counted.map(({ record, side }) => [record["kind"], side])).toEqual([["throughline.title", true]]);
    expect(titles.requests[0]?.system).toContain("title");
    expect(model.chat.requests).toHaveLength(1);
  });
});
