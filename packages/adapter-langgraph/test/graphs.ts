// Graphs that the tests run, also in processes of their own.
// node --conditions=@throughline/source graphs.ts DATABASE THREAD ask|die|resume|before:N|after:N
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import {
  Annotation,
  Command,
  interrupt,
  MessagesAnnotation,
  StateGraph,
  type BaseCheckpointSaver,
} from "@langchain/langgraph";
import { argv, exit, kill, pid, stdout } from "node:process";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { aroundCalls } from "@throughline/test-kit";
import { createCheckpointSaver } from "../src/checkpoint-saver.ts";
import { called, human, result, type Config } from "./scripted.ts";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  charges: Annotation<number>({ reducer: (one, other) => one + other, default: () => 0 }),
});

/** A state of the graph. */
interface CashierState {
  readonly config: Config;
  readonly values: { readonly messages: BaseMessage[]; readonly charges: number };
  readonly next: readonly string[];
  readonly metadata?: { readonly step: number; readonly source: string };
  readonly tasks: readonly { readonly interrupts: readonly { readonly value?: unknown }[] }[];
}

/** What the tests do with the graph. */
export interface Cashier {
  invoke(input: unknown, config: Config & { readonly durability?: "sync" }): Promise<CashierState["values"]>;
  getState(config: Config): Promise<CashierState>;
  getStateHistory(config: Config): AsyncIterable<CashierState>;
  updateState(config: Config, values: unknown): Promise<unknown>;
}

/** Calls a tool, asks a person, answers. */
export function cashier(checkpointer: BaseCheckpointSaver, beforeAnswer: () => void = () => {}): Cashier {
  let turn = 0;
  const graph = new StateGraph(State)
    .addNode("plan", ({ messages }) => {
      turn = messages.length;
      return { messages: [called(`a${turn}`, `call${turn}`)] };
    })
    .addNode("charge", ({ messages }) => ({
      messages: [
        result(`r${messages.length}`, (messages.at(-1) as AIMessage).tool_calls?.[0]?.id ?? "", "charged 5 EUR"),
      ],
      charges: 1,
    }))
    .addNode("answer", ({ messages, charges }) => {
      const said = interrupt<string, string>("send the receipt?");
      beforeAnswer();
      return {
        messages: [new AIMessage({ id: `b${messages.length}`, content: `Charged ${charges} times; receipt: ${said}` })],
      };
    })
    .addEdge("__start__", "plan")
    .addEdge("plan", "charge")
    .addEdge("charge", "answer")
    .addEdge("answer", "__end__")
    .compile({ checkpointer });
  return graph as unknown as Cashier;
}

export const thread = (id: string): Config => ({ configurable: { thread_id: id } });
export const resume = (word: string): Command => new Command({ resume: word });

/** Kills the process before or after an append, counted from 1. */
function dying(store: SessionStore, action = ""): SessionStore {
  const [when, number] = action.split(":");
  let appends = 0;
  return aroundCalls(store, ({ name, run }) => {
    if (name !== "append" || number === undefined) return run();
    appends += 1;
    if (appends !== Number(number)) return run();
    if (when === "before") kill(pid, "SIGKILL");
    return (run() as Promise<unknown>).then(() => kill(pid, "SIGKILL"));
  });
}

if (import.meta.filename === argv[1]) {
  const [, , path = "", id = "", action] = argv;
  const store = createSqliteStore({ path });
  const graph = cashier(createCheckpointSaver({ store: dying(store, action) }), () => {
    if (action === "die") kill(pid, "SIGKILL");
  });
  const input = action !== "die" && action !== "resume" ? { messages: [human("u1", "Charge me.")] } : resume("yes");
  const { messages } = await graph.invoke(input, { ...thread(id), durability: "sync" });
  stdout.write(`${messages.at(-1)?.text}\n`);
  await store.close();
  exit(0);
}
