import { MemorySession, protocol, UserError, type AgentInputItem, type Session } from "@openai/agents-core";
import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import { type AgentsSession, createAgentsSession } from "../src/agents-session.ts";
import { answer, call, newSession, outline, runner, scriptedAgent, user } from "./scripted.ts";

const message = (text: string): AgentInputItem => answer(text) as AgentInputItem;
const result: AgentInputItem = {
  type: "function_call_result",
  name: "charge",
  callId: "c1",
  status: "completed",
  output: { type: "text", text: "charged" },
};
const replaced = { ...call, arguments: '{"amount":5}' };

type Both = Session & Pick<MemorySession, "applyHistoryTransaction" | "applyHistoryMutations">;
type Refused = Promise<{ readonly isUserError: boolean; readonly message: string }>;

/** What was thrown, in what callers look at. */
const refusal = async (work: Promise<void>): Refused => {
  try {
    await work;
  } catch (error) {
    return { isUserError: error instanceof UserError, message: (error as Error).message };
  }
  throw new Error("nothing was refused");
};

const transaction = (session: Both, operationId: unknown, given: unknown): Promise<void> =>
  session.applyHistoryTransaction({ operationId, transaction: given } as never);
const append = (...items: AgentInputItem[]) => ({ type: "append_items", items });
const replace = (expectedSuffix: AgentInputItem[], ...replacement: AgentInputItem[]) => ({
  type: "replace_suffix",
  expectedSuffix,
  replacement,
});

/** What is done to a session, and what comes of it besides its items. */
const behaviors: Readonly<Record<string, (session: Both) => Promise<unknown>>> = {
  "an id": (session) => session.getSessionId(),
  "nothing added": (session) => session.addItems([]),
  "items in order": (session) => session.addItems([user("one"), call, result, message("two")]),
  "a limit": async (session) => {
    await session.addItems([user("one"), user("two"), user("three")]);
    return [
      await session.getItems(2),
      await session.getItems(9),
      await session.getItems(0),
      await session.getItems(-1),
    ];
  },
  "fields without a value": async (session) => {
    await session.addItems([{ ...user("one"), providerData: { a: null, b: [1, { c: "\ud800" }] } } as AgentInputItem]);
  },
  "items popped to the end": async (session) => {
    await session.addItems([user("one"), call, result]);
    return [await session.popItem(), await session.popItem(), await session.popItem(), await session.popItem()];
  },
  "an item added after one was popped": async (session) => {
    await session.addItems([user("one"), message("two")]);
    await session.popItem();
    await session.addItems([message("three")]);
  },
  "a cleared session": async (session) => {
    await session.addItems([user("one"), message("two")]);
    await session.clearSession();
    const emptied = await session.getItems();
    await session.addItems([user("three")]);
    return emptied;
  },
  "an empty session cleared": (session) => session.clearSession(),
  "a call replaced": async (session) => {
    await session.addItems([user("one"), call, result]);
    await session.applyHistoryMutations({
      mutations: [{ type: "replace_function_call", callId: "c1", replacement: replaced }],
    });
  },
  "a call replaced that occurs twice": async (session) => {
    await session.addItems([call, user("one"), call, result]);
    await session.applyHistoryMutations({
      mutations: [{ type: "replace_function_call", callId: "c1", replacement: replaced }],
    });
  },
  "a call replaced that nobody made": (session) =>
    session.applyHistoryMutations({
      mutations: [{ type: "replace_function_call", callId: "c9", replacement: replaced }],
    }),
  "items appended once by a transaction": async (session) => {
    await transaction(session, "op", append(user("one")));
    await transaction(session, "op", append(user("one")));
  },
  "an operation with another transaction": async (session) => {
    await transaction(session, "op", append(user("one")));
    return refusal(transaction(session, "op", append(user("two"))));
  },
  "a suffix replaced": async (session) => {
    await session.addItems([user("one"), call, message("two")]);
    await transaction(session, "op", replace([call, message("two")], message("three")));
    await transaction(session, "op", replace([call, message("two")], message("three")));
  },
  "a suffix replaced by nothing": async (session) => {
    await session.addItems([user("one"), message("two")]);
    await transaction(session, "op", replace([message("two")]));
  },
  "all of a session replaced": async (session) => {
    await session.addItems([user("one"), message("two")]);
    await transaction(session, "op", replace([user("one"), message("two")], user("three")));
  },
  "a suffix that is another": async (session) => {
    await session.addItems([user("one"), message("two")]);
    return refusal(transaction(session, "op", replace([message("three")], message("four"))));
  },
  "a suffix that is too long": (session) => refusal(transaction(session, "op", replace([user("one")]))),
  "an operation of a cleared session": async (session) => {
    await transaction(session, "op", append(user("one")));
    await session.clearSession();
    await transaction(session, "op", append(user("two")));
  },
  "an empty operation id": (session) => refusal(transaction(session, " ", append(user("one")))),
  "no operation id": (session) => refusal(transaction(session, undefined, append(user("one")))),
  "no transaction": (session) => refusal(transaction(session, "op", null)),
  "a transaction of an unknown type": (session) => refusal(transaction(session, "op", { type: "other" })),
  "a transaction with a further field": (session) =>
    refusal(transaction(session, "op", { ...append(user("one")), more: 1 })),
  "a suffix transaction without its replacement": (session) =>
    refusal(transaction(session, "op", { type: "replace_suffix", expectedSuffix: [] })),
  "an item that is none": (session) =>
    refusal(transaction(session, "op", append({ type: "function_call" } as unknown as AgentInputItem))),
  "an item with a function in it": (session) =>
    refusal(transaction(session, "op", append({ ...user("one"), providerData: { f: () => 1 } } as AgentInputItem))),
  "no arguments": (session) => refusal(session.applyHistoryTransaction(undefined as never)),
  "arguments that cannot be read": (session) =>
    refusal(
      session.applyHistoryTransaction({
        operationId: "op",
        get transaction() {
          throw new Error("unreadable");
        },
      } as never),
    ),
  "a list as a transaction": (session) => refusal(transaction(session, "op", [])),
  "a hole in the items": (session) => refusal(transaction(session, "op", { type: "append_items", items: Array(2) })),
  "a hole in an item": (session) =>
    refusal(transaction(session, "op", append({ ...user("one"), providerData: { list: Array(1) } } as AgentInputItem))),
  "an accessor in an item": async (session) => {
    let reads = 0;
    const item = {
      type: "message",
      role: "user",
      get content() {
        reads += 1;
        return `read ${reads}`;
      },
    };
    const refused = await refusal(transaction(session, "op", append(item as AgentInputItem)));
    return { ...refused, reads };
  },
  "an accessor in a suffix": (session) =>
    refusal(
      transaction(session, "op", {
        type: "replace_suffix",
        replacement: [],
        get expectedSuffix() {
          return [];
        },
      }),
    ),
  "a field that is a symbol": (session) =>
    refusal(transaction(session, "op", append({ ...user("one"), [Symbol("s")]: 1 } as AgentInputItem))),
  "a field that is hidden": (session) =>
    refusal(transaction(session, "op", append(Object.defineProperty({ ...user("one") }, "more", { value: 1 })))),
  "a list with a field of its own": (session) =>
    refusal(transaction(session, "op", append(Object.assign([user("one")], { more: 1 }) as never))),
  "a suffix replaced by what no model sees": async (session) => {
    await session.addItems([user("one"), message("two")]);
    const silent = { type: "message", role: "assistant", status: "completed", content: [] } as AgentInputItem;
    await transaction(session, "op", replace([message("two")], silent));
  },
  "an item with bytes": async (session) => {
    const image = {
      type: "input_image",
      image: "data:image/png;base64,AA==",
      providerData: { b: new Uint8Array([1, 2]) },
    };
    await session.addItems([{ type: "message", role: "user", content: [image] } as unknown as AgentInputItem]);
  },
};

describe("createAgentsSession", () => {
  it.each(Object.entries(behaviors))("does what MemorySession does: %s", async (_name, act) => {
    const theirs = new MemorySession({ sessionId: "s" });
    const ours = newSession() as AgentsSession & Both;
    const [expected, given] = [await act(theirs), await act(ours)];
    expect(given).toEqual(expected);
    expect(await ours.getItems()).toEqual(await theirs.getItems());
  });

  it("keeps every item in a session that is opened again", async () => {
    const store = createMemoryStore();
    for (const [name, act] of Object.entries(behaviors)) {
      const theirs = new MemorySession({ sessionId: "s" });
      const first = createAgentsSession({ store, sessionId: name }) as AgentsSession & Both;
      await act(theirs);
      await act(first);
      expect(await createAgentsSession({ store, sessionId: name }).getItems()).toEqual(await theirs.getItems());
    }
  });

  it("gives out objects of the caller's own", async () => {
    const session = newSession();
    await session.addItems([user("one")]);
    const [first] = await session.getItems();
    (first as { content: string }).content = "changed";
    expect(await session.getItems()).toEqual([user("one")]);
  });

  it("stores what an input callback edits as the runner does", async () => {
    const stored = async (session: Session): Promise<AgentInputItem[]> => {
      await session.addItems([user("one"), message("a0")]);
      await runner.run(scriptedAgent([[answer("a1")]]), [user("two")], {
        session,
        sessionInputCallback: (history, added) => [{ ...history[0], content: "edited" } as AgentInputItem, ...added],
      });
      return session.getItems();
    };
    const theirs = await stored(new MemorySession());
    expect(theirs).toHaveLength(5);
    expect(await stored(newSession())).toEqual(theirs);
  });

  it("refuses an operation that was applied by an earlier process", async () => {
    const store = createMemoryStore();
    const [first, second] = [1, 2].map(() => createAgentsSession({ store, sessionId: "s" }) as AgentsSession & Both);
    await transaction(first as Both, "op", append(user("one")));
    await transaction(second as Both, "op", append(user("one")));
    const other = await refusal(transaction(second as Both, "op", append(user("two"))));
    expect(other).toEqual({
      isUserError: true,
      message: "Session history operation was already applied with a different transaction.",
    });
    expect(await outline(second as Both)).toBe("user");
  });

  it("takes back items of another program one by one", async () => {
    const store = createMemoryStore();
    const session = newSession({ store });
    await session.addItems([user("one")]);
    const { ref } = session.log();
    const calls = [
      { type: "text", text: "I look." },
      { type: "toolCall", id: "x1", name: "look", arguments: {} },
      { type: "toolCall", id: "x2", name: "look", arguments: {} },
    ];
    const results = ["x1", "x2"].map((toolCallId) => ({
      type: "message",
      message: { role: "toolResult", toolCallId, toolName: "look", content: "seen" },
    }));
    await store.append(ref, [{ type: "message", message: { role: "assistant", content: calls } }, ...results]);
    expect(await outline(session)).toBe(
      "user assistant function_call function_call function_call_result function_call_result",
    );
    const popped: unknown[] = [];
    for (let left = 5; left >= 1; left--) {
      popped.push(((await session.popItem()) as { type?: string }).type);
      // Calls that lost their results are answered for the model; nothing else comes back.
      expect((await outline(session)).replaceAll(" function_call_result", "").split(" ").length).toBeLessThanOrEqual(4);
    }
    expect(popped.slice(0, 2)).toEqual(["function_call_result", "function_call_result"]);
    expect((await session.getItems())[0]).toEqual(user("one"));
  });

  it("begins with a compaction item, and other programs keep the whole history", async () => {
    const store = createMemoryStore();
    const session = newSession({ store });
    const compaction = { type: "compaction", encrypted_content: "opaque" } as unknown as AgentInputItem;
    await session.addItems([user("one"), message("two"), user("three")]);
    await session.replaceHistoryWithCompaction([compaction, user("three")]);
    await session.addItems([message("four")]);
    expect(await session.getItems()).toEqual([compaction, user("three"), message("four")]);
    expect(await newSession({ store }).getItems()).toEqual([compaction, user("three"), message("four")]);
    const records = (await Array.fromAsync(store.read(session.log().ref))).flatMap((page) => [...page.records]);
    expect(buildContext(records).messages).toHaveLength(4);
    expect(JSON.stringify(records).split("three")).toHaveLength(2);
    expect(await session.popItem()).toEqual(message("four"));
    expect(await session.popItem()).toEqual(user("three"));
    expect(await session.getItems()).toEqual([compaction]);
  });

  it("compacts with what it was given, by the session of the run", async () => {
    const seen: unknown[] = [];
    const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 } as never;
    const session = newSession({
      scopeOf: (context) => ({ agentId: (context?.context as { agent?: string } | undefined)?.agent ?? "main" }),
      compact: (ref) => Promise.resolve(seen.push(ref.agentId) > 0 ? { usage } : null),
    });
    await runner.run(scriptedAgent([[answer("hello")]]), "hi", { session, context: { agent: "ada" } });
    expect(seen).toEqual(["ada"]);
    expect(await session.getItems()).toEqual([]);
    expect(await session.getItems(undefined, { context: { agent: "ada" } } as never)).toHaveLength(2);
    expect("runCompaction" in newSession() && newSession().runCompaction).toBeFalsy();
  });

  it("gives a session of another program as items that the SDK accepts", async () => {
    const store = createMemoryStore();
    const session = newSession({ store });
    await session.addItems([user("begun here")]);
    const losses: string[] = [];
    await store.append(session.log().ref, [
      {
        type: "message",
        message: {
          role: "assistant",
          provider: "anthropic",
          model: "claude-opus-4-7",
          content: [
            { type: "thinking", thinking: "hm", thinkingSignature: "c2ln" },
            { type: "text", text: "An answer." },
            { type: "toolCall", id: "toolu_1", name: "read", arguments: { path: "a" } },
          ],
        },
      },
    ]);
    const other = newSession({ store, onLoss: ({ kind }) => losses.push(kind) });
    const items = await other.getItems();
    expect(items.every((item) => protocol.ModelItem.safeParse(item).success)).toBe(true);
    expect(await outline(other)).toBe("user assistant function_call function_call_result");
    expect(losses).toContain("thinking");
  });
});
