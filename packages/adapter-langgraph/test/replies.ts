// Runs of a graph that replies, on a thread that other processes write to. Prints how each run ended.
// node --conditions=@throughline/source replies.ts DATABASE NAME RUNS
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { argv, stdout } from "node:process";
import { ThroughlineError } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createCheckpointSaver } from "../src/checkpoint-saver.ts";
import { thread } from "./graphs.ts";
import { ai, human } from "./scripted.ts";

const [, , path = "", name = "", runs = "1"] = argv;
const store = createSqliteStore({ path, create: true });
// The id of a reply names what it replies to.
const graph = new StateGraph(MessagesAnnotation)
  .addNode("reply", ({ messages }) => ({ messages: [ai(`re-${messages.at(-1)?.id}`, `To ${messages.at(-1)?.id}`)] }))
  .addEdge("__start__", "reply")
  .addEdge("reply", "__end__")
  .compile({ checkpointer: createCheckpointSaver({ store }) });
for (let at = 0; at < Number(runs); at++) {
  const id = `${name}-${at}`;
  const input = { messages: [human(id, `Writer ${id}`)] };
  const outcome = await graph.invoke(input, { ...thread("t"), durability: "sync" }).then(
    () => "done",
    (error: unknown) => (ThroughlineError.isInstance(error) ? error.code : String(error)),
  );
  stdout.write(`${id} ${outcome}\n`);
}
await store.close();
