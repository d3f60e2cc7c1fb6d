import { sessionRef, type AgentTool, type SessionRef, type SessionStore } from "@throughline/core";
import { offline } from "@throughline/models/offline";
import { createSessions } from "@throughline/session";

export const key = "agent:main:cli:direct:home";
export const ref: SessionRef = sessionRef({ key });

const readTool: AgentTool = {
  definition: {
    name: "read",
    description: "Reads a file.",
    inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
  run: ({ path }) => {
    if (path === "missing.txt") throw new Error("no such file");
    return `heron in ${String(path)}`;
  },
};

/** Turns of a session through the facade, with a tool that fails for one file. */
export async function talk(store: SessionStore, ...texts: readonly string[]): Promise<void> {
  const sessions = createSessions({ store, model: offline(), tools: [readTool] });
  const session = await sessions.open(key);
  for (const text of texts) await session.runTurn(text);
  await sessions.close();
}
