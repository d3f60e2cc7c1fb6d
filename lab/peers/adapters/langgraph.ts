// A graph of LangGraph over our checkpointer, as a participant of the pairs.
import type * as ForLanggraph from "../../../packages/adapter-langgraph/src/index.ts";
import type { Participant } from "./claude.ts";

type Fields = Readonly<Record<string, unknown>>;
type Class<Made> = new (fields: Fields | unknown) => Made;

interface Builder {
  addNode(name: string, node: (state: { readonly messages: readonly unknown[] }) => Fields): Builder;
  addEdge(from: string, to: string): Builder;
  compile(options: { readonly checkpointer: unknown }): { invoke(input: unknown, config: unknown): Promise<unknown> };
}

/** The packages of LangGraph, and our adapter. */
export interface LanggraphModules {
  readonly graphs: unknown;
  readonly messages: unknown;
  readonly adapter: typeof ForLanggraph;
}

/** Takes a turn with a tool in a thread; the model is a node that answers by a script. */
export function langgraphOf({ graphs, messages, adapter }: LanggraphModules): Participant {
  const { StateGraph, MessagesAnnotation } = graphs as {
    readonly StateGraph: Class<Builder>;
    readonly MessagesAnnotation: unknown;
  };
  const classes = messages as Readonly<Record<"HumanMessage" | "AIMessage" | "ToolMessage", Class<unknown>>>;
  return {
    name: "langgraph",
    async take(store, ref, turn) {
      let sent = "";
      const callId = `call_${turn}`;
      const call = { id: callId, name: "clock", args: {}, type: "tool_call" };
      const graph = new StateGraph(MessagesAnnotation)
        .addNode("ask", () => ({ messages: [new classes.AIMessage({ content: "", tool_calls: [call] })] }))
        .addNode("clock", () => ({
          messages: [new classes.ToolMessage({ tool_call_id: callId, name: "clock", content: `${turn}:00` })],
        }))
        .addNode("answer", (state) => {
          sent = JSON.stringify(state.messages);
          return { messages: [new classes.AIMessage({ content: `The graph says it is ${turn} o'clock.` })] };
        })
        .addEdge("__start__", "ask")
        .addEdge("ask", "clock")
        .addEdge("clock", "answer")
        .addEdge("answer", "__end__")
        .compile({ checkpointer: adapter.createCheckpointSaver({ store, refOf: () => ref }) });
      const asked = new classes.HumanMessage({ content: `Graph: turn ${turn}?` });
      await graph.invoke({ messages: [asked] }, { configurable: { thread_id: "any" }, durability: "sync" });
      return sent;
    },
  };
}
