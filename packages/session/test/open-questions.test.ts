import { afterEach, describe, expect, it } from "vitest";
import { defineTool } from "@throughline/core";
import type { SessionsOptions } from "@throughline/session";
import { createMemoryStore } from "@throughline/store-memory";
import { createScriptedModel } from "./scripted-model.ts";
import { createFixture, key, type Fixture } from "./session-fixture.ts";

const open: Fixture[] = [];

afterEach(async () => {
  for (const { sessions } of open.splice(0)) await sessions.close();
});

type Decide = (isAllowed: boolean) => void;

/** A turn with two parallel calls; the questions that were asked, with what answers each. */
function refunds(options: Partial<SessionsOptions> = {}) {
  const asked: string[] = [];
  const paid: string[] = [];
  const answers = new Map<string, Decide>();
  const refund = defineTool({
    name: "refund",
    description: "Pays back.",
    input: { type: "object", properties: { order: { type: "string" } }, required: ["order"] },
    run: ({ order }) => {
      paid.push(order);
      return `paid ${order}`;
    },
  });
  const calls = ["A", "B"].map((order) => ({ id: `call-${order}`, name: "refund", arguments: { order } }));
  const fixture = createFixture({
    script: createScriptedModel({ calls }, "Done.", "Later."),
    tools: [refund],
    approveTool: ({ id }) => {
      asked.push(id);
      return new Promise((resolve) => {
        answers.set(id, (isAllowed) => resolve(isAllowed ? true : { refuse: "No." }));
      });
    },
    ...options,
  });
  open.push(fixture);
  const answer = async (id: string, isAllowed: boolean): Promise<void> => {
    await expect.poll(() => answers.has(id)).toBe(true);
    answers.get(id)?.(isAllowed);
  };
  return { fixture, asked, paid, answer };
}

/** What the model reads as the results of the calls. */
function resultsIn(messages: readonly { readonly role: string; readonly content: unknown }[]): readonly string[] {
  return messages.flatMap(({ content }) =>
    (Array.isArray(content) ? (content as readonly { readonly type: string; readonly content?: unknown }[]) : [])
      .filter(({ type }) => type === "tool_result")
      .map((block) => JSON.stringify(block.content)),
  );
}

describe("the questions about parallel calls", () => {
  it("come one after the other, so that one answer allows one call", async () => {
    const { fixture, asked, paid, answer } = refunds();
    const turn = (await fixture.sessions.open(key)).runTurn("Pay both back");
    await answer("call-A", true);
    await expect.poll(() => paid).toEqual(["A"]);
    await expect.poll(() => asked).toEqual(["call-A", "call-B"]);
    await answer("call-B", false);
    await turn;
    expect(paid).toEqual(["A"]);
  });

  it("do not come before the first one is answered", async () => {
    const { fixture, asked, answer } = refunds();
    const turn = (await fixture.sessions.open(key)).runTurn("Pay both back");
    await expect.poll(() => asked).toEqual(["call-A"]);
    // Whatever is ready to be asked would be by now.
    for (let at = 0; at < 20; at++) await new Promise(setImmediate);
    expect(asked).toEqual(["call-A"]);
    await answer("call-A", false);
    await answer("call-B", false);
    await turn;
  });

  it("come at once where that is asked for", async () => {
    const { fixture, asked, paid, answer } = refunds({ approvals: "parallel" });
    const turn = (await fixture.sessions.open(key)).runTurn("Pay both back");
    await expect.poll(() => asked).toEqual(["call-A", "call-B"]);
    await answer("call-B", true);
    await answer("call-A", true);
    await turn;
    expect(paid).toEqual(["B", "A"]);
  });

  it("end with the turn: the next one is not asked any more", async () => {
    const { fixture, asked, paid, answer } = refunds();
    const controller = new AbortController();
    const turn = (await fixture.sessions.open(key)).runTurn("Pay both back", { signal: controller.signal });
    await expect.poll(() => asked).toEqual(["call-A"]);
    controller.abort();
    expect((await turn).outcome).toBe("aborted");
    await answer("call-A", true);
    for (let at = 0; at < 20; at++) await new Promise(setImmediate);
    expect([asked, paid]).toEqual([["call-A"], []]);
  });
});

describe("a process that died at the question", () => {
  const notRun = "before anybody allowed this call. It was not run.";

  /** Another process that knows that the first one is gone. What the model reads of the calls there. */
  async function later(
    until: (first: ReturnType<typeof refunds>) => Promise<unknown>,
    go: (session: Awaited<ReturnType<Fixture["sessions"]["open"]>>) => Promise<unknown>,
    given: Partial<SessionsOptions> = {},
  ): Promise<readonly string[]> {
    const store = createMemoryStore();
    const owners = (self: string) => ({
      self,
      stateOf: (other: string) => (other === self ? "self" : "gone") as "gone",
    });
    const run = defineTool({
      name: "refund",
      description: "Pays back.",
      input: { type: "object", properties: { order: { type: "string" } }, required: ["order"] },
      // Killed while it runs.
      run: () => new Promise<string>(() => {}),
    });
    const first = refunds({ store, owners: owners("first"), tools: [run], ...given });
    const lost = (await first.fixture.sessions.open(key)).runTurn("Pay both back");
    lost.catch(() => {});
    await until(first);
    const second = createFixture({ store, owners: owners("second"), script: createScriptedModel("Later.") });
    open.push(second);
    await go(await second.sessions.open(key));
    const { messages } = second.model.requests.at(-1) as unknown as { messages: Parameters<typeof resultsIn>[0] };
    return resultsIn(messages);
  }

  it.each<[string, Parameters<typeof later>[1]]>([
    ["resume", (session) => session.resume()],
    ["a new turn", (session) => session.runTurn("Hello?")],
    ["a new turn with a key", (session) => session.runTurn("Hello?", { idempotencyKey: "k1" })],
  ])("has not run the call, and the model reads so: %s", async (_case, go) => {
    const results = await later(({ asked }) => expect.poll(() => asked).toEqual(["call-A"]), go);
    expect(results).toEqual([expect.stringContaining(notRun), expect.stringContaining(notRun)]);
  });

  it("may have run what was allowed, and has not run the call whose question was open", async () => {
    const [first, second] = await later(
      async ({ answer, asked }) => {
        await answer("call-A", true);
        await expect.poll(() => asked).toEqual(["call-A", "call-B"]);
      },
      (session) => session.resume(),
    );
    expect(first).toContain("It may have run.");
    expect(second).toContain(notRun);
  });

  it("may have run a call where nothing is asked", async () => {
    const results = await later(
      ({ fixture }) => expect.poll(() => fixture.events.filter(({ name }) => name === "tool.started").length).toBe(2),
      (session) => session.resume(),
      { approveTool: undefined as never },
    );
    expect(results).toHaveLength(2);
    for (const result of results) expect(result).toContain("It may have run.");
  });
});
