// A process of its own whose turn asks for a structured answer and calls a tool that never ends. It says when the tool runs.
// node test/output-process.ts <folder>
import process from "node:process";
import { z } from "zod";
import { defineTool } from "@throughline/core";
import { createSessions } from "@throughline/session";
import { scriptedModel } from "@throughline/testing";
import { openStore } from "./process-store.ts";
import { key } from "./session-fixture.ts";

const [folder = ""] = process.argv.slice(2);
const weather = defineTool({
  name: "weather",
  description: "The weather of a city.",
  input: z.object({ city: z.string() }),
  run: () => {
    process.stdout.write("the tool runs\n");
    return new Promise<string>((resolve) => setTimeout(() => resolve("too late"), 60_000));
  },
});
await using store = openStore("sqlite", folder);
const model = scriptedModel([{ calls: [{ name: "weather", arguments: { city: "Vienna" } }] }], { jsonMode: false });
await using sessions = createSessions({ store, model, tools: [weather] });
await using session = await sessions.open(key);
await session.runTurn("City?", { output: z.object({ name: z.string(), population: z.number() }) });
