import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { text } from "node:stream/consumers";
import { createSessions } from "@throughline/session";
import { createMemoryStore } from "@throughline/store-memory";
import { createProviderSimulator, scriptedModel } from "@throughline/testing";
import { expect, it } from "vitest";
import { readLetter } from "../src/read-letter.ts";

const invoice = { kind: "invoice", sender: "Stadtwerke Graz", amount: 84.5, dueDate: "2026-12-14" };
const letter = "Stadtwerke Graz: please pay 84.50 euros by 14 December 2026.";

async function read(...script: Parameters<typeof scriptedModel>[0]) {
  const model = scriptedModel(script);
  await using sessions = createSessions({ store: createMemoryStore(), model });
  return { letter: await readLetter(await sessions.open("letters"), letter), model };
}

it("gives the letter as an object", async () => {
  const { letter: found, model } = await read({ output: invoice });
  expect(found).toEqual(invoice);
  expect(JSON.stringify(model.requests[0]?.messages)).toContain("Stadtwerke Graz");
});

it("has a date in another form corrected", async () => {
  const { letter: found, model } = await read({ output: { ...invoice, dueDate: "14.12.2026" } }, { output: invoice });
  expect(found).toEqual(invoice);
  expect(JSON.stringify(model.requests[1]?.messages)).toContain("answer.dueDate: Invalid ISO date");
});

it("gives null when the model does not get it right", async () => {
  const wrong = { output: { ...invoice, kind: "postcard" } };
  expect((await read(wrong, wrong)).letter).toBeNull();
});

it("runs against Anthropic's API", { tags: ["slow"] }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "throughline-example-"));
  await using provider = createProviderSimulator({
    replies: [{ kind: "answer", content: [{ type: "json", value: invoice }] }],
  });
  await provider.start();
  const env = { ...process.env, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
  const program = join(import.meta.dirname, "../src/main.ts");
  const child = spawn(process.execPath, [program], { cwd: folder, env, stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(letter);
  const [printed] = await Promise.all([text(child.stdout), once(child, "exit")]);
  expect(JSON.parse(printed)).toEqual(invoice);
  expect(provider.refusals).toEqual([]);
  const body = provider.requests[0]?.body;
  expect(body).toMatchObject({ output_config: { format: { schema: { additionalProperties: false } } } });
  await rm(folder, { recursive: true, force: true });
});
