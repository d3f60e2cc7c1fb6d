import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterAll, describe, expect, it } from "vitest";
import { runChild, start, temporaryDirectory } from "./harness.ts";

const home = temporaryDirectory();
afterAll(() => home.remove());

const key = "agent:main:cli:direct:restart";
const turn = [
  { type: "message", message: { role: "user", content: "What is in a.txt and b.txt?" } },
  {
    type: "message",
    message: {
      role: "assistant",
      content: [
        { type: "text", text: "I will read both." },
        { type: "toolCall", id: "call_1", name: "read", arguments: { path: "a.txt" } },
        { type: "toolCall", id: "call_2", name: "read", arguments: { path: "b.txt" } },
      ],
      stopReason: "toolUse",
    },
  },
  {
    type: "message",
    message: { role: "toolResult", toolCallId: "call_1", toolName: "read", content: "alpha", isError: false },
  },
  {
    type: "message",
    message: { role: "toolResult", toolCallId: "call_2", toolName: "read", content: "beta", isError: false },
  },
];

describe("a process that is killed in mid-conversation", () => {
  it("leaves the next one everything it acknowledged, tool results included", async () => {
    const child = start(home.path, ["append", key, "--json"]);
    const acknowledgements = createInterface({ input: child.stdout });
    for (const draft of turn) child.stdin.write(`${JSON.stringify(draft)}\n`);
    let acknowledged = 0;
    for await (const line of acknowledgements) {
      expect(JSON.parse(line)).toMatchObject({ kind: "ack", durability: "disk" });
      if (++acknowledged === turn.length) break;
    }
    child.kill("SIGKILL");
    await once(child, "close");

    const { stdout, code } = await runChild(home.path, ["context", key, "--provider", "anthropic", "--json"]);
    expect(code).toBe(0);
    const { messages } = JSON.parse(stdout) as { messages: { role: string; content: unknown }[] };
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(messages[1]?.content).toMatchObject([
      { type: "text", text: "I will read both." },
      { type: "tool_use", id: "call_1", input: { path: "a.txt" } },
      { type: "tool_use", id: "call_2", input: { path: "b.txt" } },
    ]);
    expect(JSON.stringify(messages[2]?.content)).toMatch(/tool_result.*call_1.*alpha.*call_2.*beta/);
  });
});
