import { describe, expect, it } from "vitest";
import { describeWrongValues, type CheckedValues } from "@throughline/test-kit/options";
import { createMemoryStore } from "@throughline/store-memory";
import { createClaudeSessionStore, createSdkConversation } from "@throughline/adapter-claude-agent-sdk";
import { sessionRef } from "@throughline/core";

const needed = { store: createMemoryStore(), ref: sessionRef({ key: "agent:main:main" }) };

/** Of each option a value of another type or out of range. */
const calls: readonly CheckedValues[] = [
  {
    name: "createSdkConversation",
    needed,
    wrong: {
      store: [{}, 5],
      ref: ["agent:main:main", null],
      query: [{}],
      queryOptions: [5],
      historyCharacters: [-1],
      leaseMs: [0],
      owner: [""],
      clock: [{}],
      random: [{}],
    },
    call: (options) => createSdkConversation(options),
  },
  {
    name: "createClaudeSessionStore",
    needed: { store: needed.store },
    wrong: {
      store: [{}, 5],
      agentId: ["", 5],
      namespace: [5],
      refOf: [{}],
      onLoss: [{}],
      purge: ["yes"],
      clock: [{}],
      random: [{}],
    },
    call: (options) => createClaudeSessionStore(options),
  },
];

describeWrongValues(calls);

describe("send()", () => {
  it.each([
    [5, {}],
    ["", {}],
    ["Hi", { signal: 5 }],
    ["Hi", { onMessages: () => undefined }],
  ])("refuses %j with %j, and stores nothing", async (prompt, options) => {
    const conversation = createSdkConversation({ ...needed, query: () => expect.unreachable() });
    await expect(conversation.send(prompt as never, options as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
    expect(await needed.store.load(needed.ref)).toBeNull();
  });
});
