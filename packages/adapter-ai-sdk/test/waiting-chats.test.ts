import { sessionRow, systemClock } from "@throughline/core/internal";
import { createHistory } from "@throughline/history";
import { decideApproval, listApprovals } from "@throughline/session/internal";
import { describe, expect, it } from "vitest";
import type { StoredMessage } from "../src/chat-store.ts";
import { chatServer, decide, type Part, statesOf, user } from "./chat-server.ts";

const clock = systemClock;

/** A chat whose model has called two tools that need an approval, and another program over the same store. */
async function waitingChat() {
  const server = chatServer(true);
  const { store, chats } = server;
  const asked = await server.answer([user("u1")]);
  const ref = chats().sessionOf("c");
  const pending = async (): Promise<readonly string[]> =>
    (await listApprovals(store, ref, clock)).map(({ callId, tool }) => `${callId} ${tool}`);
  /** The number of calls that lists show. */
  const listed = async (): Promise<readonly number[]> =>
    (await store.list({ agentId: "main" })).sessions.map((state) => sessionRow(state).pendingApprovals);
  const decideElsewhere = (callId: string, answer: true | { readonly refuse: string }) =>
    decideApproval(store, ref, { callId, answer, clock });
  return { ...server, asked, pending, listed, decideElsewhere, ref };
}

describe("a chat whose calls need an approval", () => {
  it("waits: lists and other programs see the calls, and a model is not sent their reply", async () => {
    const { pending, listed, store, ref } = await waitingChat();
    expect(await pending()).toEqual(["c1 clock", "c2 clock"]);
    expect(await listed()).toEqual([2]);
    const records = await Array.fromAsync(store.read(ref));
    const history = createHistory("anthropic");
    history.append(records.flatMap((page) => page.records));
    expect(history.render().messages).toEqual([{ role: "user", content: [{ type: "text", text: "u1" }] }]);
  });

  it("carries out in the SDK what was decided elsewhere", async () => {
    const { answer, chats, decideElsewhere, listed, pending, prompts, runs } = await waitingChat();
    await decideElsewhere("c1", true);
    await decideElsewhere("c2", { refuse: "Too dear." });
    expect(await pending()).toEqual([]);
    expect(await listed()).toEqual([0]);
    const decided = await chats().loadChat<StoredMessage>("c");
    expect(statesOf(decided.at(-1))).toEqual(["c1 approval-responded", "c2 approval-responded"]);
    const done = await answer(decided);
    expect(runs).toEqual(["c1"]);
    expect(statesOf(done.at(-1))).toEqual(["c1 output-available", "c2 output-denied"]);
    const results = prompts.at(-1)?.at(-1)?.["content"] as unknown as readonly Part[];
    const outputs = Object.fromEntries(results.map(({ toolCallId, output }) => [toolCallId, output]));
    expect(outputs).toMatchObject({
      c1: { type: "text", value: "paid c1" },
      c2: { type: "execution-denied", reason: "Too dear." },
    });
    expect(await pending()).toEqual([]);
    expect(await listed()).toEqual([0]);
  });

  it("keeps a decision that the page does not know while the user decides on the other call", async () => {
    const { answer, asked, decideElsewhere, pending, runs } = await waitingChat();
    await decideElsewhere("c1", true);
    await answer(decide(asked, { c2: true }));
    expect(runs.toSorted()).toEqual(["c1", "c2"]);
    expect(await pending()).toEqual([]);
  });

  it("refuses another decision of the page than the first one", async () => {
    const { answer, asked, chats, decideElsewhere, runs } = await waitingChat();
    await decideElsewhere("c1", { refuse: "No." });
    await expect(answer(decide(asked, { c1: true, c2: true }))).rejects.toMatchObject({
      cause: { code: "APPROVAL_DECIDED", details: { callId: "c1" } },
    });
    expect(runs).toEqual([]);
    expect(statesOf((await chats().loadChat<StoredMessage>("c")).at(-1))).toEqual([
      "c1 approval-responded",
      "c2 approval-requested",
    ]);
  });

  it("waits for the rest when the user has decided on a part", async () => {
    const { asked, chats, listed, pending } = await waitingChat();
    await chats().saveChat({ chatId: "c", messages: decide(asked, { c1: true }) });
    expect(await pending()).toEqual(["c2 clock"]);
    expect(await listed()).toEqual([1]);
  });

  it("waits once, however often it is saved", async () => {
    const { asked, chats, pending, ref, store } = await waitingChat();
    const before = (await store.load(ref))?.head.lastSeq;
    await chats().saveChat({ chatId: "c", messages: asked });
    expect((await store.load(ref))?.head.lastSeq).toBe(before);
    await chats().saveChat({ chatId: "c", messages: asked, activeStreamId: null });
    expect(await pending()).toEqual(["c1 clock", "c2 clock"]);
  });

  it("waits no more after a new message, or when the reply is removed", async () => {
    const asking = await waitingChat();
    await asking.chats().saveChat({ chatId: "c", messages: [...asking.asked, user("u2")] });
    expect(await asking.pending()).toEqual([]);
    expect(await asking.listed()).toEqual([0]);
    const removing = await waitingChat();
    const chats = removing.chats();
    const [first] = await chats.loadChat<StoredMessage>("c");
    await chats.saveChat({ chatId: "c", messages: first === undefined ? [] : [first] });
    expect(await removing.pending()).toEqual([]);
    expect(await removing.listed()).toEqual([0]);
  });
});
