import type { Body, RefusalCase } from "./refusal-case.ts";

const hi = { role: "user", content: "Hi" };
export const ask = (messages: unknown, rest: Body = {}): Body => ({
  model: "llama3.1",
  stream: false,
  messages,
  ...rest,
});
const good = ask([hi]);
const calling = (args: unknown): Body =>
  ask([hi, { role: "assistant", content: "", tool_calls: [{ function: { name: "look", arguments: args } }] }]);
const decode = (from: string, field: string, to: string): string =>
  `json: cannot unmarshal ${from} into Go struct field ChatRequest.${field} of type ${to}`;

/** Ollama. */
export const ollamaCases: readonly RefusalCase[] = [
  { title: "no model", bad: { messages: [hi] }, says: "model is required", good },
  { title: "messages as a string", bad: ask("Hi"), says: decode("string", "messages", "[]api.Message"), good },
  {
    title: "content as parts",
    bad: ask([{ role: "user", content: [{ type: "text", text: "Hi" }] }]),
    says: decode("array", "messages.content", "string"),
    good,
  },
  {
    title: "arguments as a string",
    bad: calling("{}"),
    says: decode("string", "messages.tool_calls.function.arguments", "api.ToolCallFunctionArguments"),
    good: calling({}),
  },
  {
    title: "image as a data URL",
    bad: ask([{ ...hi, images: ["data:image/png;base64,AA=="] }]),
    says: "illegal base64 data at input byte 4",
    good: ask([{ ...hi, images: ["AA=="] }]),
  },
  {
    title: "image not in a list",
    bad: ask([{ ...hi, images: "AA==" }]),
    says: decode("string", "messages.images", "[]api.ImageData"),
    good: ask([{ ...hi, images: ["AA=="] }]),
  },
  {
    title: "num_ctx as a string",
    bad: ask([hi], { options: { num_ctx: "8192" } }),
    says: 'option "num_ctx" must be of type integer',
    good: ask([hi], { options: { num_ctx: 8192 } }),
  },
  {
    title: "truncate as a string",
    bad: ask([hi], { truncate: "no" }),
    says: decode("string", "truncate", "bool"),
    good: ask([hi], { truncate: false }),
  },
  {
    title: "tools on a model without",
    bad: ask([hi], { model: "plain", tools: [{ type: "function", function: { name: "look" } }] }),
    says: "registry.ollama.ai/library/plain does not support tools",
    good: ask([hi], { model: "plain" }),
  },
  {
    title: "thinking on a model without",
    bad: ask([hi], { model: "plain", think: true }),
    says: '"plain" does not support thinking',
    good: ask([hi], { model: "plain", think: false }),
  },
];
