import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defineTool, type ChatModel } from "@throughline/core";
import { createSessions, type Sessions, type SessionsOptions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import { kinds } from "./json-shapes.ts";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

let directory: ReturnType<typeof temporaryDirectory>;
beforeEach(async () => {
  directory = temporaryDirectory();
  await withSessions(async (sessions) => {
    expect(await (await sessions.open("shop")).runTurn("Pay both back")).toMatchObject({ outcome: "waiting" });
  });
});
afterEach(() => directory.remove());

const paid: string[] = [];
const refund = defineTool({
  name: "refund",
  description: "Pays back.",
  input: { type: "object", properties: { order: { type: "string" } }, required: ["order"] },
  run: ({ order }) => {
    paid.push(order);
    return `paid ${order}`;
  },
});

/** Calls the tool twice after a message of the user, and answers its results. */
const chat: ChatModel = {
  provider: "anthropic",
  api: "anthropic",
  chat: ({ messages }) => {
    const isAnswer = JSON.stringify(messages.at(-1)).includes("tool_result");
    const calls = ["A", "B"].map((order) => ({
      type: "toolCall" as const,
      id: `call-${order}`,
      name: "refund",
      arguments: { order },
    }));
    const content = isAnswer ? [{ type: "text" as const, text: JSON.stringify(messages.at(-1)) }] : calls;
    const message = { role: "assistant" as const, content, stopReason: isAnswer ? "stop" : "toolUse" };
    return Promise.resolve({ message, stopReason: message.stopReason, usage: {} } as never);
  },
};

/** A program over the same store as the command line. */
async function withSessions(work: (sessions: Sessions) => Promise<unknown>): Promise<void> {
  paid.length = 0;
  await using store = createSqliteStore({ path: join(directory.path, "sessions.db") });
  const approveTool: SessionsOptions["approveTool"] = ({ id }) => ({ wait: { title: `Refund \u001b[31m${id}` } });
  const model = { chat, modelId: "claude-sonnet-4-5", windowTokens: 100_000 };
  await using sessions = createSessions({ store, model, tools: [refund], approveTool });
  await work(sessions);
}

const run = (...args: string[]): ReturnType<typeof runHere> =>
  runHere(directory.path, ["--store", `sqlite:${join(directory.path, "sessions.db")}`, ...args]);

describe("throughline approvals", () => {
  it("lists the calls that wait, without escapes, and `sessions` shows that the session waits", async () => {
    const { stdout, stderr, code } = await run("approvals", "shop");
    expect(code).toBe(0);
    expect(stdout).toContain("call-A");
    expect(stdout).toContain('{"order":"B"}');
    expect(stdout).not.toContain("\u001b");
    expect(stderr).toContain("--approve ID");
    const printed = (await run("approvals", "shop", "--json")).stdout;
    expect(kinds(printed)).toEqual(["approval", "approval", "end"]);
    const json = objects(printed);
    expect(json).toMatchObject([{ kind: "approval", callId: "call-A", tool: "refund" }, { callId: "call-B" }, {}]);
    expect((await run("sessions")).stdout).toContain("waits for an answer");
    expect(objects((await run("sessions", "--json")).stdout)[0]).toMatchObject({ pendingApprovals: 2 });
  });

  it("stores a decision that the resumed turn carries out, and the first one holds", async () => {
    expect((await run("approvals", "shop", "--approve", "call-A")).stdout).toContain("call-A: approved");
    const again = (await run("approvals", "shop", "--approve", "call-A", "--json")).stdout;
    expect(kinds(again)).toEqual(["decision"]);
    expect(objects(again)).toMatchObject([{ kind: "decision", callId: "call-A", isAllowed: true, replayed: true }]);
    const other = await run("approvals", "shop", "--refuse", "call-A", "No", "--json");
    expect([other.code, objects(other.stderr).at(-1)]).toMatchObject([1, { code: "APPROVAL_DECIDED" }]);
    const refused = await run("approvals", "shop", "--refuse", "call-B", "Too", "much");
    expect(refused.stderr).toContain("Nothing waits any more");
    expect((await run("sessions")).stdout).not.toContain("waits for an answer");
    await withSessions(async (sessions) => {
      const turn = await (await sessions.open("shop")).resume();
      expect([turn.outcome, paid]).toEqual(["done", ["A"]]);
      expect(turn.text).toContain("Too much");
    });
  });

  it("takes a question back for the program that asked", async () => {
    const withdrawn = await run("approvals", "shop", "--withdraw", "call-A", "--json");
    expect(objects(withdrawn.stdout)).toMatchObject([{ kind: "decision", callId: "call-A", isAllowed: false }]);
    expect((await run("approvals", "shop", "--approve", "call-A")).code).toBe(1);
    expect((await run("approvals", "shop", "--withdraw", "call-B", "It is closed.")).stderr).toContain("Nothing waits");
    await withSessions(async (sessions) => {
      const turn = await (await sessions.open("shop")).resume();
      expect([turn.outcome, paid]).toEqual(["done", []]);
      expect(turn.text).toContain("took its question back");
      expect(turn.text).toContain("It is closed.");
    });
  });

  it("finds nothing to decide in a copy, because two stores could run a call twice", async () => {
    const other = `jsonl:${join(directory.path, "other")}`;
    expect((await run("copy", "--all", "--to-store", other)).code).toBe(0);
    const copied = await runHere(directory.path, ["--store", other, "approvals", "shop"]);
    expect([copied.code, copied.stdout]).toEqual([0, ""]);
    expect(copied.stderr).toContain("No call waits");
    expect((await run("approvals", "shop")).stdout).toContain("call-A");
  });

  it("is what chat names in a session that waits, and a message refuses the calls", async () => {
    const key = "agent:main:cli:direct:shop";
    const store = ["--store", `sqlite:${join(directory.path, "sessions.db")}`];
    const args = ["chat", ...store, "--model", "offline", "--key", key];
    const { stderr, code } = await runHere(directory.path, args, { stdin: "Never mind" });
    expect(code).toBe(0);
    expect(stderr).toContain(`Waits for an answer: 2 tool calls.`);
    expect(stderr).toContain(`approvals ${key}`);
    expect((await run("approvals", "shop")).stderr).toContain("No call waits");
    expect((await run("show", "shop")).stdout).toContain("The user answered instead of deciding.");
  });

  it("refuses wrong uses", async () => {
    expect((await run("approvals", "shop", "--approve", "a", "--refuse", "b")).code).toBe(2);
    expect((await run("approvals", "shop", "words")).code).toBe(2);
    expect((await run("approvals", "shop", "--approve", "nothing")).code).toBe(1);
  });
});
