import type { AgentTool } from "@throughline/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createProviderSimulator, type ProviderSimulator, type ReceivedRequest } from "@throughline/testing";

import { testSize } from "../../../tools/test-size.ts";
import { providerCases } from "./provider-cases.ts";
import { createFixture, key } from "./session-fixture.ts";

const names = [
  "work",
  "w".repeat(64),
  "w".repeat(65),
  `mcp__${"a-long-server-name_".repeat(5)}tool`,
  `${"x".repeat(127)}1`,
  "w".repeat(129),
  "w".repeat(200),
  "fs.read",
  "mcp server:tool/one",
  "看看",
];

/** Between the bounds of the providers or of a kind that another one shows: these wait for the long tier. */
const repeated: ReadonlySet<string> = new Set([
  "w".repeat(64),
  `mcp__${"a-long-server-name_".repeat(5)}tool`,
  "w".repeat(200),
]);

let simulator: ProviderSimulator;
beforeEach(async () => {
  simulator = createProviderSimulator({ models: { "*": { windowTokens: 200_000 } } });
  await simulator.start();
});
afterEach(() => simulator.close());

function tool(name: string, ran: string[]): AgentTool {
  return {
    definition: { name, description: "Works.", inputSchema: { type: "object", properties: {} } },
    run: () => {
      ran.push(name);
      return "done";
    },
  };
}

/** The names in the list of tools of a request, in whichever shape. */
function listed({ body }: ReceivedRequest): string[] {
  const { tools } = body as { tools: readonly { name?: string; function?: { name: string } }[] };
  return tools.map((each) => each.name ?? each.function?.name ?? "");
}

describe.each(providerCases)("names of tools, through $name", ({ create, modelId, messagesOf }) => {
  it.each(testSize({ short: names.filter((name) => !repeated.has(name)), long: names }))(
    "%s is one name in the list of tools, in the history and in the log",
    async (name) => {
      const ran: string[] = [];
      const { sessions, records } = createFixture({
        model: { chat: create(simulator), modelId },
        tools: [tool("other", ran), tool(name, ran)],
      });
      await using session = await sessions.open(key);
      simulator.enqueue("Ready.");
      await session.runTurn("What have you?");
      const wire = listed(simulator.requests[0] as ReceivedRequest)[1] ?? "";
      simulator.enqueue({ kind: "answer", content: [{ type: "tool-call", name: wire, input: {} }] }, "Seen.");
      const deltas: string[] = [];
      const turn = await session.runTurn("Work", {
        onDelta: (delta) => void (delta.type === "tool-call" && deltas.push(delta.name)),
      });
      expect(turn).toMatchObject({ outcome: "done", text: "Seen." });
      expect(ran).toEqual([name]);
      expect(deltas).toEqual([name]);
      const last = simulator.requests.at(-1) as ReceivedRequest;
      expect(listed(last)[1]).toBe(wire);
      const sent = JSON.stringify(messagesOf(last));
      expect(sent).toContain(`"name":${JSON.stringify(wire)}`);
      if (wire !== name) expect(sent).not.toContain(`"name":${JSON.stringify(name)}`);
      const kept = JSON.stringify((await records()).map(({ record }) => record["message"] ?? null));
      expect(kept).toContain(`"name":${JSON.stringify(name)}`);
      expect(kept).toContain(`"toolName":${JSON.stringify(name)}`);
    },
  );

  it("refuses tools that it could not tell apart, before anything is written", async () => {
    const { sessions, records } = createFixture({
      model: { chat: create(simulator), modelId },
      tools: [tool("a b", []), tool("a_b", [])],
    });
    await using session = await sessions.open(key);
    await expect(session.runTurn("Go")).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: 'The tools "a b" and "a_b" would both be called "a_b" by the provider.',
    });
    expect(await records()).toEqual([]);
    expect(simulator.requests).toEqual([]);
  });
});
