import { Agent, Runner, tool, type AgentInputItem, type Session } from "@openai/agents-core";
import { assistantMessage, functionCall, modelError, ScriptedModel } from "@openai/agents-core/testing";
import { createMemoryStore } from "@throughline/store-memory";
import { type AgentsSession, type AgentsSessionOptions, createAgentsSession } from "../src/agents-session.ts";

export const runner: Runner = new Runner({ tracingDisabled: true });

/** A tool that charges a card. */
export function chargeTool(needsApproval: boolean = false, onRun: () => void = () => {}): ReturnType<typeof tool> {
  return tool({
    name: "charge",
    description: "Charges the card.",
    parameters: { type: "object", properties: {}, required: [], additionalProperties: true },
    strict: false,
    needsApproval,
    execute: () => {
      onRun();
      return "charged 5 EUR";
    },
  }) as ReturnType<typeof tool>;
}

export const call: ReturnType<typeof functionCall> = functionCall("charge", {}, { callId: "c1", id: "fc_1" });
export const answer = (text: string): ReturnType<typeof assistantMessage> => assistantMessage(text);
export const failure = (): ReturnType<typeof modelError> => modelError(new Error("the provider is down"));

export function scriptedAgent(
  steps: ConstructorParameters<typeof ScriptedModel>[0],
  tools: ReturnType<typeof tool>[] = [chargeTool()],
): Agent {
  return new Agent({ name: "cashier", model: new ScriptedModel(steps), tools });
}

export function newSession(options: Partial<AgentsSessionOptions> = {}): AgentsSession {
  return createAgentsSession({ store: createMemoryStore(), sessionId: "s", ...options });
}

export const user = (content: string): AgentInputItem => ({ type: "message", role: "user", content });

/** What a session holds, in a word for each item. */
export async function outline(session: Session): Promise<string> {
  const items = (await session.getItems()) as readonly { type?: string; role?: string }[];
  return items.map(({ type, role }) => role ?? type).join(" ");
}

/** Runs to the end, as a stream or not; what went wrong is given back. */
export async function finish(run: Promise<unknown>, stream: boolean): Promise<unknown> {
  try {
    const result = (await run) as AsyncIterable<unknown> & { readonly completed: Promise<void> };
    if (!stream) return result;
    for await (const _event of result);
    await result.completed;
    return result;
  } catch (error) {
    return error;
  }
}
