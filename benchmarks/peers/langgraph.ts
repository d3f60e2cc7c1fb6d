// LangGraph with its SqliteSaver: a graph of one node that adds the messages of a turn, checkpointed as it runs.
import { join } from "node:path";
import { callId, turnParts, type Contender } from "./contender.ts";

interface Graph {
  invoke(input: unknown, config: unknown): Promise<unknown>;
  getState(config: unknown): Promise<{ readonly values: { readonly messages?: readonly unknown[] } }>;
}
interface Builder {
  addNode(name: string, node: (state: { readonly turn: number }) => unknown): Builder;
  addEdge(from: string, to: string): Builder;
  compile(options: unknown): Graph;
}
interface Saver {
  readonly db: { close(): void };
}
type Message = new (fields: unknown) => unknown;

const config = { configurable: { thread_id: "peers" } };

async function opened(folder: string): Promise<{ readonly graph: Graph; readonly saver: Saver }> {
  const [main, sqlite, messages] = [
    "@langchain/langgraph",
    "@langchain/langgraph-checkpoint-sqlite",
    "@langchain/core/messages",
  ];
  const graphs = (await import(main as string)) as Record<string, unknown>;
  const savers = (await import(sqlite as string)) as { readonly SqliteSaver: { fromConnString(path: string): Saver } };
  const classes = (await import(messages as string)) as Record<string, Message>;
  const annotation = graphs["MessagesAnnotation"] as { readonly spec: object };
  const root = graphs["Annotation"] as { (): unknown; Root(spec: unknown): unknown };
  const builderOf = graphs["StateGraph"] as new (state: unknown) => Builder;
  const ai = classes["AIMessage"] as Message;
  const human = classes["HumanMessage"] as Message;
  const tool = classes["ToolMessage"] as Message;
  const node = ({ turn }: { readonly turn: number }): unknown => {
    const id = callId(turn);
    return {
      messages: [
        new human({ content: turnParts.question }),
        new ai({ content: "", tool_calls: [{ id, name: turnParts.tool, args: turnParts.toolInput }] }),
        new tool({ content: turnParts.result, tool_call_id: id, name: turnParts.tool }),
        new ai({ content: turnParts.answer }),
      ],
    };
  };
  const saver = savers.SqliteSaver.fromConnString(join(folder, "langgraph.db"));
  const graph = new builderOf(root.Root({ ...annotation.spec, turn: root() }))
    .addNode("answer", node)
    .addEdge("__start__", "answer")
    .addEdge("answer", "__end__")
    .compile({ checkpointer: saver });
  return { graph, saver };
}

/** Opens the graph with one new thread. */
export async function open(folder: string): Promise<Contender> {
  const { graph, saver } = await opened(folder);
  return {
    turn: (index) => graph.invoke({ turn: index }, config),
    async reopen() {
      const again = await opened(folder);
      const state = await again.graph.getState(config);
      again.saver.db.close();
      return state.values.messages?.length ?? 0;
    },
    close: () => Promise.resolve(saver.db.close()),
  };
}
