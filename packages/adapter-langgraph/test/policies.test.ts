import { systemClock, updateEntry } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { type CheckpointSaverOptions, createCheckpointSaver } from "../src/checkpoint-saver.ts";
import { cashier, resume, thread } from "./graphs.ts";
import { ai, conversationOf, human, outline, refOf } from "./scripted.ts";

const denyAll: CheckpointSaverOptions["sendPolicy"] = { default: "deny", rules: [], mode: "first-match" };
const idle: CheckpointSaverOptions["reset"] = {
  rule: { mode: "idle", atHour: 4, idleMinutes: 30 },
  byType: {},
  byChannel: new Map(),
};
const asked = (id: string): object => ({ messages: [human(id, "Charge me.")] });

function movingStore(): {
  readonly options: Pick<CheckpointSaverOptions, "store" | "clock">;
  readonly pass: (minutes: number) => void;
} {
  let nowMs = Date.parse("2026-03-02T10:00:00Z");
  const clock = { nowMs: () => nowMs, sleep: systemClock.sleep };
  const options = { store: createMemoryStore({ clock }), clock };
  return { options, pass: (minutes) => void (nowMs += minutes * 60_000) };
}

describe("a thread with a send policy", () => {
  it("refuses a run before a node runs, and stores nothing", async () => {
    const store = createMemoryStore();
    const graph = cashier(createCheckpointSaver({ store, sendPolicy: denyAll }));
    await expect(graph.invoke(asked("u1"), thread("t"))).rejects.toMatchObject({ code: "SEND_DENIED" });
    expect(await store.load(refOf("t"))).toBeNull();
  });

  it("obeys the entry's own deny by default, for new input and a resumed run; its state can be read", async () => {
    const store = createMemoryStore();
    const graph = cashier(createCheckpointSaver({ store }));
    await graph.invoke(asked("u1"), thread("t"));
    await updateEntry(store, refOf("t"), (entry) => ({ ...entry, sendPolicy: "deny" }));
    const denied = { code: "SEND_DENIED", outcome: "not-applied", details: { source: "session" } };
    await expect(graph.invoke(resume("yes"), thread("t"))).rejects.toMatchObject(denied);
    await expect(graph.invoke(asked("u2"), thread("t"))).rejects.toMatchObject(denied);
    expect((await graph.getState(thread("t"))).next).toEqual(["answer"]);
    await updateEntry(store, refOf("t"), (entry) => ({ ...entry, sendPolicy: "allow" }));
    const { messages } = await graph.invoke(resume("yes"), thread("t"));
    expect(outline(messages).at(-1)).toBe("ai: Charged 1 times; receipt: yes");
  });

  it.each(["sync", "async"] as const)(
    "ends a run that is denied meanwhile, and no step runs twice: %s",
    async (durability) => {
      const store = createMemoryStore();
      const ran: string[] = [];
      const graph = new StateGraph(MessagesAnnotation)
        .addNode("charge", async () => {
          ran.push("charge");
          await updateEntry(store, refOf("t"), (entry) => ({ ...entry, sendPolicy: "deny" }));
          return { messages: [ai("a1", "charged")] };
        })
        .addNode("answer", () => {
          ran.push("answer");
          return { messages: [ai("a2", "done")] };
        })
        .addEdge("__start__", "charge")
        .addEdge("charge", "answer")
        .compile({ checkpointer: createCheckpointSaver({ store }) });
      const run = graph.invoke(asked("u1") as never, { ...thread("t"), durability });
      await expect(run).rejects.toMatchObject({ code: "SEND_DENIED", outcome: null });
      if (durability === "sync") {
        expect(ran).toEqual(["charge"]);
        expect(await conversationOf(store, "t")).toEqual(["human: Charge me.", "ai: charged"]);
      }
      await updateEntry(store, refOf("t"), (entry) => ({ ...entry, sendPolicy: "allow" }));
      const { messages } = await graph.invoke(null, thread("t"));
      expect(outline(messages)).toEqual(["human: Charge me.", "ai: charged", "ai: done"]);
      expect(ran.filter((name) => name === "charge")).toHaveLength(1);
    },
  );
});

describe("a thread with a reset policy", () => {
  it("begins in a new session with the input after the idle minutes, and stays in the list", async () => {
    const { options, pass } = movingStore();
    const saver = createCheckpointSaver({ ...options, reset: idle });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("answer", ({ messages }) => ({ messages: [ai(`a${messages.length}`, `I see ${messages.length}.`)] }))
      .addEdge("__start__", "answer")
      .compile({ checkpointer: saver });
    const seen: unknown[] = [];
    for (const [at, minutes] of [0, 10, 40].entries()) {
      pass(minutes);
      // Looking at a state resets nothing.
      await graph.getState(thread("t"));
      const { messages } = await graph.invoke({ messages: [human(`u${at}`, "Hi")] }, thread("t"));
      seen.push(messages.length);
    }
    expect(seen).toEqual([2, 4, 2]);
    const listed = await Array.fromAsync(saver.list({}));
    expect(new Set(listed.map(({ config }) => config.configurable?.["thread_id"]))).toEqual(new Set(["t"]));
    expect(listed).toHaveLength(3);
    const { sessions } = await options.store.list({ state: "archived" });
    expect(sessions).toHaveLength(1);
  });

  it("keeps a run that waits for a person in its session", async () => {
    const { options, pass } = movingStore();
    const graph = cashier(createCheckpointSaver({ ...options, reset: idle }));
    await graph.invoke(asked("u1"), thread("t"));
    pass(40);
    const { messages } = await graph.invoke(resume("yes"), thread("t"));
    expect(outline(messages).at(-1)).toBe("ai: Charged 1 times; receipt: yes");
  });
});
