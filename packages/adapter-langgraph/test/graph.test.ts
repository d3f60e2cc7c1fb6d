import { AIMessage, RemoveMessage, SystemMessage, type BaseMessage } from "@langchain/core/messages";
import { MemorySaver, MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { hasErrorCode, ThroughlineError, type RecordDraft } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { aroundCalls } from "@throughline/test-kit";
import { testSize } from "../../../tools/test-size.ts";
import { createCheckpointSaver } from "../src/checkpoint-saver.ts";
import { cashier, resume, thread } from "./graphs.ts";
import { ai, conversationOf, human, outline, recordsOf, refOf } from "./scripted.ts";

const folder = mkdtempSync(join(tmpdir(), "throughline-langgraph-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function inProcess(path: string, id: string, action: string): Promise<string> {
  const args = ["--conditions=@throughline/source", join(import.meta.dirname, "graphs.ts"), path, id, action];
  return promisify(execFile)(execPath, args).then(
    ({ stdout }) => stdout.trim(),
    (error: unknown) => String((error as { signal?: string }).signal ?? error),
  );
}

const full = ["human: Charge me.", "ai:  ?call1", "tool: charged 5 EUR", "ai: Charged 1 times; receipt: yes"];

describe("graphs", () => {
  it(
    "continues in another process where an interrupt or kill -9 left it, and runs no node twice",
    { tags: ["slow"] },
    async () => {
      const path = join(folder, "graphs.db");
      expect(await inProcess(path, "t", "ask")).toBe("charged 5 EUR");
      expect(await inProcess(path, "t", "die")).toBe("SIGKILL");
      expect(await inProcess(path, "t", "resume")).toBe("Charged 1 times; receipt: yes");
      await using store = createSqliteStore({ path });
      expect(await conversationOf(store, "t")).toEqual(full);
      const graph = cashier(createCheckpointSaver({ store }));
      const state = await graph.getState(thread("t"));
      expect(outline(state.values.messages)).toEqual(full);
      expect([state.values.charges, state.next]).toEqual([1, []]);
    },
  );

  const moments = testSize({
    short: ["before:1", "after:3", "before:6"],
    long: Array.from({ length: 8 }, (_, at) => [`before:${at + 1}`, `after:${at + 1}`]).flat(),
  });

  it.each(moments)("continues after kill -9 at an append: %s", { tags: ["slow"] }, async (moment) => {
    const path = join(folder, `${moment.replace(":", "-")}.db`);
    expect(await inProcess(path, "t", moment)).toBe("SIGKILL");
    await using store = createSqliteStore({ path });
    const graph = cashier(createCheckpointSaver({ store }));
    const { next, values } = await graph.getState(thread("t"));
    const isThere = (values.messages?.length ?? 0) > 0 || next.length > 0;
    const state = await graph.invoke(isThere ? null : { messages: [human("u1", "Charge me.")] }, thread("t"));
    expect(outline(state.messages).at(-1)).toBe("tool: charged 5 EUR");
    expect(outline((await graph.invoke(resume("yes"), thread("t"))).messages)).toEqual(full);
    expect(await conversationOf(store, "t")).toEqual(full);
  });

  it("has the states that MemorySaver has, at every checkpoint of turns, forks and edits", async () => {
    const store = createMemoryStore();
    const outlines = await Promise.all(
      [new MemorySaver(), createCheckpointSaver({ store })].map(async (saver) => {
        const graph = cashier(saver);
        for (let turn = 1; turn <= 3; turn++) {
          await graph.invoke({ messages: [human(`u${turn}`, `Turn ${turn}`)] }, thread("t"));
          await graph.invoke(resume(`yes ${turn}`), thread("t"));
        }
        const history = await Array.fromAsync(graph.getStateHistory(thread("t")));
        const early = history.find(({ values }) => values.messages?.length === 4);
        if (early === undefined) throw new Error("no early checkpoint");
        await graph.invoke({ messages: [human("fork", "Another way")] }, early.config);
        await graph.invoke(resume("fork"), thread("t"));
        await graph.updateState(thread("t"), { messages: [new RemoveMessage({ id: "u1" }), human("a1", "In place")] });
        await graph.updateState(thread("t"), {
          messages: [
            new RemoveMessage({ id: "__remove_all__" }),
            new SystemMessage({ id: "s", content: "Brief." }),
            human("fork", "Another way"),
          ],
        });
        const states = await Array.fromAsync(graph.getStateHistory(thread("t")));
        return states.map(({ values, next, metadata, tasks }) => ({
          messages: outline((values.messages ?? []) as BaseMessage[]),
          charges: values.charges,
          next,
          step: metadata?.step,
          source: metadata?.source,
          interrupts: tasks.map(({ interrupts }) => interrupts.map(({ value }) => value as unknown)),
        }));
      }),
    );
    expect(outlines[1]).toEqual(outlines[0]);
    expect(outlines[1]?.length).toBeGreaterThan(20);
    expect(await conversationOf(store, "t")).toEqual(["system: Brief.", "human: Another way"]);
  });

  it("keeps what sub-graphs say to themselves out of the conversation, and knows it later", async () => {
    const store = createMemoryStore();
    const build = (saver: MemorySaver | ReturnType<typeof createCheckpointSaver>) => {
      const inner = new StateGraph(MessagesAnnotation)
        .addNode("think", ({ messages }) => ({ messages: [ai(`i${messages.length}`, `Inside ${messages.length}`)] }))
        .addEdge("__start__", "think")
        .addEdge("think", "__end__")
        .compile({ checkpointer: true });
      return new StateGraph(MessagesAnnotation)
        .addNode("sub", async (state, config) => {
          const { messages } = await inner.invoke({ messages: state.messages.slice(-1) }, config);
          return { messages: [ai(`o${state.messages.length}`, `Outside after ${messages.length}`)] };
        })
        .addEdge("__start__", "sub")
        .addEdge("sub", "__end__")
        .compile({ checkpointer: saver });
    };
    const run = async (saver: MemorySaver | ReturnType<typeof createCheckpointSaver>): Promise<readonly string[]> => {
      await build(saver).invoke({ messages: [human("u1", "One?")] }, thread("t"));
      await build(saver).invoke({ messages: [human("u2", "Two?")] }, thread("t"));
      return outline((await build(saver).getState(thread("t"))).values.messages);
    };
    const expected = await run(new MemorySaver());
    expect(await run(createCheckpointSaver({ store }))).toEqual(expected);
    expect(await conversationOf(store, "t")).toEqual(expected);
    expect(expected.join()).not.toContain("Inside");
  });

  it("loses nothing of many runs on one thread from several handles", { tags: ["slow"] }, async () => {
    const path = join(folder, "writers.db");
    await using store = createSqliteStore({ path });
    await using second = createSqliteStore({ path });
    const step = (saver: ReturnType<typeof createCheckpointSaver>) =>
      new StateGraph(MessagesAnnotation)
        .addNode("reply", ({ messages }) => ({
          messages: [ai(`re-${messages.at(-1)?.id}`, `To ${messages.at(-1)?.id}`)],
        }))
        .addEdge("__start__", "reply")
        .addEdge("reply", "__end__")
        .compile({ checkpointer: saver });
    const graphs = [store, second].map((one) => step(createCheckpointSaver({ store: one })));
    const configs = await Promise.all(
      Array.from({ length: 12 }, async (_, at) => {
        const graph = graphs[at % 2] ?? step(createCheckpointSaver({ store }));
        await graph.invoke({ messages: [human(`w${at}`, `Writer ${at}`)] }, thread("t"));
        const history = await Array.fromAsync(graph.getStateHistory(thread("t")));
        return history.find(({ values }) => values.messages?.at(-1)?.id === `re-w${at}`)?.config;
      }),
    );
    const [graph] = graphs;
    for (const [at, config] of configs.entries()) {
      if (config === undefined || graph === undefined) throw new Error(`the run ${at} is not there`);
      const { values } = await graph.getState(config);
      expect(outline(values.messages).slice(-2)).toEqual([`human: Writer ${at}`, `ai: To w${at}`]);
    }
    const newest = await graph?.getState(thread("t"));
    expect(outline(newest?.values.messages ?? []).length).toBeGreaterThanOrEqual(2);
    await conversationOf(store, "t");
  });

  it("continues a session that another program began, and sees what others write meanwhile", async () => {
    const store = createMemoryStore();
    const ref = refOf("t");
    const say = (text: string, role = "user"): Promise<unknown> =>
      store.append(ref, [
        {
          type: "message",
          message:
            role === "user"
              ? { role, content: text }
              : {
                  role,
                  content: [{ type: "text", text }],
                  api: "x",
                  provider: "x",
                  model: "m",
                  usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 },
                  stopReason: "stop",
                },
        },
      ]);
    await store.save(ref, { sessionId: "foreign" }, { ifRevision: null });
    await say("Begun elsewhere.");
    await say("Answered elsewhere.", "assistant");
    const sent: (readonly string[])[] = [];
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("reply", ({ messages }) => {
        sent.push(outline(messages));
        return { messages: [new AIMessage(`Reply ${sent.length}`)] };
      })
      .addEdge("__start__", "reply")
      .addEdge("reply", "__end__")
      .compile({ checkpointer: createCheckpointSaver({ store }) });
    await graph.invoke({ messages: [human("u1", "Go on.")] }, thread("t"));
    const first = ["human: Begun elsewhere.", "ai: Answered elsewhere.", "human: Go on."];
    expect(sent[0]).toEqual(first);
    expect(await conversationOf(store, "t")).toEqual([...first, "ai: Reply 1"]);
    await say("Meanwhile?");
    await say("Meanwhile!", "assistant");
    await graph.invoke({ messages: [human("u2", "And now?")] }, thread("t"));
    const second = [...first, "ai: Reply 1", "human: Meanwhile?", "ai: Meanwhile!", "human: And now?"];
    expect(sent[1]).toEqual(second);
    expect(await conversationOf(store, "t")).toEqual([...second, "ai: Reply 2"]);
    const { values } = await graph.getState(thread("t"));
    expect(outline(values.messages)).toEqual([...second, "ai: Reply 2"]);
    const messages = (await recordsOf(store, "t")).filter(({ type }) => type === "message");
    expect(messages.length).toBe(8);
    await graph.updateState(thread("t"), { messages: [new RemoveMessage({ id: messages[0]?.id ?? "" })] });
    expect(await conversationOf(store, "t")).toEqual([...second.slice(1), "ai: Reply 2"]);
  });

  it("takes calls and results of another program as they are, and writes nothing of them again", async () => {
    const store = createMemoryStore();
    const ref = refOf("t");
    const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 };
    const facts = { role: "assistant", api: "x", provider: "x", model: "m", usage, stopReason: "stop" };
    const message = (fields: object): RecordDraft => ({ type: "message", message: fields });
    const call = (id: string): object => ({ type: "toolCall", id, name: "clock", arguments: { zone: "UTC" } });
    await store.save(ref, { sessionId: "foreign" }, { ifRevision: null });
    await store.append(ref, [
      message({ role: "user", content: "What time is it?" }),
      message({ ...facts, content: [{ type: "text", text: "Looking." }, call("c1")] }),
      message({ role: "toolResult", toolCallId: "c1", toolName: "clock", content: [{ type: "text", text: "noon" }] }),
      message({ ...facts, content: [call("never answered")] }),
      message({ role: "user", content: "Well?" }),
      message({ ...facts, content: [{ type: "text", text: "Noon." }] }),
    ]);
    const before = await conversationOf(store, "t");
    const run = async (id: string): Promise<readonly string[]> => {
      const graph = new StateGraph(MessagesAnnotation)
        .addNode("reply", ({ messages }) => ({ messages: [ai(`re-${id}`, `Reply to ${messages.length}`)] }))
        .addEdge("__start__", "reply")
        .addEdge("reply", "__end__")
        // A handle of its own each time: it knows nothing of what others were given.
        .compile({ checkpointer: createCheckpointSaver({ store }) });
      return outline((await graph.invoke({ messages: [human(id, `Asked ${id}`)] }, thread("t"))).messages);
    };
    // The call that nobody answered has a result for the graph, which providers ask for.
    expect((await run("u1")).length).toBe(before.length + 3);
    await run("u2");
    const added = ["human: Asked u1", "ai: Reply to 8", "human: Asked u2", "ai: Reply to 10"];
    expect(await conversationOf(store, "t")).toEqual([...before, ...added]);
    const types = (await recordsOf(store, "t")).map(({ type, side }) => (side ? "side" : type));
    expect(types.filter((type) => type !== "side")).toEqual(Array.from({ length: 10 }, () => "message"));
  });

  it("rejects with a typed error when the store goes away in the middle, and continues behind it", async () => {
    const store = createMemoryStore();
    let isAway = false;
    const leaving = aroundCalls(store, ({ name, run }) => {
      if (isAway && name === "append")
        throw new ThroughlineError("STORE_CLOSED", "The store is closed.", { outcome: "not-applied" });
      return run();
    });
    const graph = cashier(createCheckpointSaver({ store: leaving }), () => {
      isAway = true;
    });
    await graph.invoke({ messages: [human("u1", "Charge me.")] }, { ...thread("t"), durability: "sync" });
    const failed = await graph
      .invoke(resume("yes"), { ...thread("t"), durability: "sync" })
      .catch((error: unknown) => error);
    expect(hasErrorCode(failed, "STORE_CLOSED")).toBe(true);
    isAway = false;
    const again = cashier(createCheckpointSaver({ store }));
    const { messages } = await again.invoke(resume("yes"), thread("t"));
    expect(outline(messages)).toEqual(full);
    expect(await conversationOf(store, "t")).toEqual(full);
  });
});
