// A graph that asks before it charges a card, in a thread that another process continues: also after this one died in the middle.
// node --conditions=@throughline/source src/main.ts "Charge my card." [sessions.db] [--die]
import process from "node:process";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command, interrupt, MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { createCheckpointSaver } from "@throughline/adapter-langgraph";
import { createSqliteStore } from "@throughline/store-sqlite";

const [question = "Charge my card.", path = "sessions.db", option] = process.argv.slice(2);

const store = createSqliteStore({ path });
const checkpointer = createCheckpointSaver({ store });

// Nodes that answer without a key: put a model in the place of `plan` and `answer`.
const graph = new StateGraph(MessagesAnnotation)
  .addNode("plan", () => ({
    messages: [new AIMessage({ content: "", tool_calls: [{ id: "call_1", name: "charge", args: { eur: 5 } }] })],
  }))
  .addNode("charge", () => {
    process.stdout.write("The card is charged.\n");
    return { messages: [new ToolMessage({ tool_call_id: "call_1", name: "charge", content: "charged 5 EUR" })] };
  })
  .addNode("answer", () => {
    if (option === "--die") process.kill(process.pid, "SIGKILL");
    const reply = interrupt<string, string>("Send a receipt?");
    return { messages: [new AIMessage(`I charged 5 EUR. Receipt: ${reply}.`)] };
  })
  .addEdge("__start__", "plan")
  .addEdge("plan", "charge")
  .addEdge("charge", "answer")
  .addEdge("answer", "__end__")
  .compile({ checkpointer });

// "sync": a step is in the log before the next node runs. Without it, what a killed process had just done may run again.
const config = { configurable: { thread_id: "customer-7" }, durability: "sync" as const };
const { next, tasks } = await graph.getState(config);
if (next.length === 0) await graph.invoke({ messages: [new HumanMessage(question)] }, config);
else {
  // Another process died before it asked, or waits for the answer.
  if (tasks.every(({ interrupts }) => interrupts.length === 0)) await graph.invoke(null, config);
  await graph.invoke(new Command({ resume: "yes" }), config);
}
const { values } = await graph.getState(config);
for (const message of values.messages) process.stdout.write(`${message.getType()}: ${message.text}\n`);
await store.close();
