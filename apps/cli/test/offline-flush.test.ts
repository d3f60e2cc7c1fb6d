import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

it.each([
  ["with a tool", "read a.txt", /read answered:\n.*the quay is red/s],
  ["without one", "hello", /Hello\. I answer by rules/],
])("the offline rules answer the user's question after a memory flush, %s", async (_, question, answer) => {
  const workspace = join(directory.path, "workspace");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "a.txt"), "the quay is red\n");
  const prompt = "Write important context to memory/YYYY-MM-DD.md now. If nothing to store, reply with NO_REPLY.";
  const memoryFlush = { thresholds: [{ percent: 5, prompt, injectAs: "user" }] };
  writeFileSync(join(directory.path, "config.json"), JSON.stringify({ session: { memoryFlush } }));
  const say = (text: string) => {
    const place = ["--workspace", workspace, "--tools", "all", "--window", "60000", "--json"];
    return runHere(directory.path, ["chat", "--key", "work", "--model", "offline", "--once", text, ...place]);
  };
  await runHere(directory.path, ["append", "work"], {
    stdin: `${JSON.stringify({ type: "message", message: { role: "user", content: "words of it ".repeat(1500) } })}\n`,
  });
  const { code, stdout } = await say(question);
  const [turn = {}] = objects(stdout);
  const names = (turn["events"] as { readonly name: string }[]).map(({ name }) => name);
  expect([code, names]).toEqual([0, expect.arrayContaining(["flush.asked", "flush.ended"])]);
  expect(turn["text"]).toMatch(answer);
});
