export { openAgent } from "./open-agent.ts";
export type { Agent, AgentOptions } from "./open-agent.ts";
