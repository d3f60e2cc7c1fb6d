// Runs compiled graphs of LangGraph over its SqliteSaver, and prints what `getState` has at each of their checkpoints. Copied into a
// folder that has the packages. Usage: node graph.ts DATABASE [copy of a database that has a thread already]
import process from "node:process";

/** A message as LangChain's classes have it. */
interface Message {
  readonly id?: string;
  readonly content: unknown;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly { readonly id: string; readonly name: string; readonly args: object }[];
  getType(): string;
}

interface Config {
  readonly configurable: { readonly thread_id: string; readonly checkpoint_id?: string };
}

interface Snapshot {
  readonly config: Config;
  readonly values: { readonly messages?: readonly Message[] };
}

interface Graph {
  invoke(input: unknown, config: Config): Promise<unknown>;
  updateState(config: Config, values: unknown, asNode?: string): Promise<Config>;
  getState(config: Config): Promise<Snapshot>;
  getStateHistory(config: Config): AsyncIterable<Snapshot>;
}

interface Builder {
  addNode(name: string, node: unknown): Builder;
  addEdge(from: string, to: string): Builder;
  compile(options?: unknown): Graph;
}

type Class<Made> = new (fields: unknown) => Made;

const [database = "", existing] = process.argv.slice(2);
const load = async (name: string): Promise<Record<string, unknown>> => (await import(name)) as Record<string, unknown>;
const graphs = await load("@langchain/langgraph");
const messages = await load("@langchain/core/messages");
const { SqliteSaver } = (await load("@langchain/langgraph-checkpoint-sqlite")) as unknown as {
  readonly SqliteSaver: { fromConnString(path: string): unknown };
};
const [StateGraph, Annotation] = [graphs["StateGraph"] as Class<Builder>, graphs["MessagesAnnotation"] as unknown];
const [Command, interrupt] = [
  graphs["Command"] as Class<unknown>,
  graphs["interrupt"] as unknown as (value: unknown) => unknown,
];
const [Human, Ai, Tool, System, Remove] = ["Human", "AI", "Tool", "System", "Remove"].map(
  (name) => messages[name === "Remove" ? "RemoveMessage" : `${name}Message`] as Class<unknown>,
) as [Class<unknown>, Class<unknown>, Class<unknown>, Class<unknown>, Class<unknown>];

/** Graphs by the thread that each of them runs on. */
const builders: Readonly<Record<string, () => Builder>> = {
  // Two calls at once, results of both, an interrupt before the answer.
  tools: () =>
    new StateGraph(Annotation)
      .addNode("ask", () => ({
        messages: [
          new Ai({
            id: "a1",
            content: [{ type: "text", text: "Looking." }],
            tool_calls: ["Oslo", "Bergen"].map((city) => ({ id: city, name: "weather", args: { city } })),
            usage_metadata: { input_tokens: 9, output_tokens: 4, total_tokens: 13 },
          }),
        ],
      }))
      .addNode("look", () => ({
        messages: [
          new Tool({ id: "t1", tool_call_id: "Oslo", name: "weather", content: "-3" }),
          new Tool({ id: "t2", tool_call_id: "Bergen", name: "weather", content: "No.", status: "error" }),
        ],
      }))
      .addNode("answer", () => ({
        messages: [new Ai({ id: "a2", content: `Sent: ${String(interrupt("send it?"))}` })],
      }))
      .addEdge("__start__", "ask")
      .addEdge("ask", "look")
      .addEdge("look", "answer")
      .addEdge("answer", "__end__"),
  // Each turn answers; every third takes the oldest messages away, or writes one again.
  trimmed: () => {
    let turn = 0;
    return new StateGraph(Annotation)
      .addNode("reply", (state: { readonly messages: readonly Message[] }) => {
        turn += 1;
        const reply = new Ai({ id: `r${turn}`, content: `Reply ${turn} é\u{1F30A}` });
        const oldest = state.messages[0]?.id ?? "";
        if (turn === 3) return { messages: [new Remove({ id: oldest }), reply] };
        if (turn === 4) return { messages: [new Human({ id: oldest, content: "Written again" }), reply] };
        if (turn === 5)
          return {
            messages: [new Remove({ id: "__remove_all__" }), new System({ id: "s", content: "Brief." }), reply],
          };
        return { messages: [reply] };
      })
      .addEdge("__start__", "reply")
      .addEdge("reply", "__end__");
  },
  // A graph within a graph has checkpoints of its own.
  nested: () => {
    const inner = new StateGraph(Annotation)
      .addNode("think", () => ({ messages: [new Ai({ id: "inner", content: "Inside" })] }))
      .addEdge("__start__", "think")
      .addEdge("think", "__end__")
      .compile({ checkpointer: true });
    return new StateGraph(Annotation)
      .addNode("sub", inner)
      .addNode("end", () => ({ messages: [new Ai({ id: "outer", content: "Outside" })] }))
      .addEdge("__start__", "sub")
      .addEdge("sub", "end")
      .addEdge("end", "__end__");
  },
};

const on = (threadId: string, checkpointId?: string): Config => ({
  configurable: { thread_id: threadId, ...(checkpointId === undefined ? {} : { checkpoint_id: checkpointId }) },
});
const says = (id: string, content: string): unknown => ({ messages: [new Human({ id, content })] });

function compiled(threadId: string, saver: unknown): Graph {
  const builder = builders[threadId]?.();
  if (builder === undefined) throw new Error(threadId);
  return builder.compile({ checkpointer: saver });
}

async function run(saver: unknown): Promise<void> {
  const tools = compiled("tools", saver);
  await tools.invoke(says("u1", "Weather?"), on("tools"));
  await tools.invoke(new Command({ resume: "yes" }), on("tools"));
  await tools.invoke(says("u2", "Again?"), on("tools"));
  // Another way from an earlier checkpoint.
  const history = await Array.fromAsync(tools.getStateHistory(on("tools")));
  const early = history.findLast(({ values }) => values.messages?.length === 1);
  if (early === undefined) throw new Error("no early checkpoint");
  await tools.updateState(early.config, says("u1b", "Or Bodø?"), "ask");
  const trimmed = compiled("trimmed", saver);
  for (let turn = 1; turn <= 6; turn++) await trimmed.invoke(says(`q${turn}`, `Question ${turn}`), on("trimmed"));
  await compiled("nested", saver).invoke(says("n1", "Deep?"), on("nested"));
}

/** A message in one line: who said it, its words, calls, and which call it answers. */
function shown(message: Message): string {
  const { content, tool_calls: calls = [], tool_call_id: callId } = message;
  const parts = typeof content === "string" ? [{ text: content }] : (content as readonly { readonly text?: string }[]);
  const words = parts.map(({ text = "" }) => text).join("");
  const named = calls.map(({ id, name, args }) => ` ?${id} ${name} ${JSON.stringify(args)}`);
  return `${message.getType()}${callId === undefined ? "" : ` =${callId}`}: ${words}${named.join("")}`;
}

const states: { readonly thread: string; readonly checkpoint: string; readonly messages: readonly string[] }[] = [];
async function note(threadId: string, graph: Graph): Promise<void> {
  const add = ({ values }: Snapshot, checkpoint: string): void =>
    void states.push({ thread: threadId, checkpoint, messages: (values.messages ?? []).map(shown) });
  for await (const snapshot of graph.getStateHistory(on(threadId)))
    // What `getState` has of this checkpoint, as the history does not apply what is pending.
    add(await graph.getState(snapshot.config), snapshot.config.configurable.checkpoint_id ?? "");
  add(await graph.getState(on(threadId)), "");
}

const saver = SqliteSaver.fromConnString(database);
if (existing === undefined) {
  await run(saver);
  for (const threadId of Object.keys(builders)) await note(threadId, compiled(threadId, saver));
} else {
  // The thread of another program's database: its graph had nodes of these names.
  const node = (): object => ({ messages: [] });
  const graph = new StateGraph(Annotation)
    .addNode("m", node)
    .addNode("t", node)
    .addNode("h", node)
    .addEdge("__start__", "m")
    .addEdge("m", "t")
    .addEdge("t", "h")
    .addEdge("h", "__end__");
  await note(existing, graph.compile({ checkpointer: saver }));
}
process.stdout.write(`${JSON.stringify(states)}\n`);
