import { openai } from "@throughline/models/openai";
import { createProviderSimulator } from "@throughline/testing";
import { expect, it } from "vitest";
import { createFixture, echoTool, key } from "./session-fixture.ts";

it("thinking that a compatible server shows goes back to its model within the tool loop, and to no other", async () => {
  const simulator = createProviderSimulator({
    replies: [
      {
        kind: "answer",
        content: [
          { type: "thinking", thinking: "I look first." },
          { type: "tool-call", name: "echo", input: { text: "hi" }, id: "call_1" },
        ],
      },
    ],
    fallback: () => "Done.",
    models: { "*": { reasoningContent: true } },
  });
  await simulator.start();
  const chat = openai("gpt-5", {
    api: "openai",
    baseUrl: `${simulator.url}/v1`,
    apiKey: "k",
    provider: "deepseek",
  }).chat;
  const { sessions } = createFixture({ model: { chat, modelId: "deepseek-v4" }, tools: [echoTool] });
  const session = await sessions.open(key);
  expect((await session.runTurn("Hi")).outcome).toBe("done");
  await session.setModel({ chat, modelId: "another" });
  await session.runTurn("And now?");
  await sessions.close();
  const sent = simulator.requests.map(({ body }) =>
    JSON.stringify(body).includes('"reasoning_content":"I look first."'),
  );
  expect([sent, simulator.refusals]).toEqual([[false, true, false], []]);
  await simulator.close();
});
