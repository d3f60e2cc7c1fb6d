export { anthropic } from "./anthropic-chat.ts";
export type { AnthropicModelOptions } from "./anthropic-chat.ts";
