import { textOf } from "./json-value.ts";
import type { JsonObject } from "./json-value.ts";
import type { SimulatedModel } from "./model-table.ts";

/** Answers Ollama's endpoints that describe models. Returns null for any other path. */
export function describeModels(
  path: string,
  body: JsonObject,
  names: readonly string[],
  resolve: (name: string) => SimulatedModel,
  defaultContextTokens: number,
): JsonObject | null {
  if (path === "/api/version") return { version: "0.13.0" };
  if (path === "/api/show") {
    const { windowTokens, capabilities } = resolve(textOf(body["model"]));
    return {
      details: { family: "sim", format: "gguf", parameter_size: "8B", quantization_level: "Q4_K_M" },
      model_info: { "general.architecture": "sim", "sim.context_length": windowTokens },
      parameters: `num_ctx ${Math.min(windowTokens, defaultContextTokens)}`,
      template: "{{ .Prompt }}",
      capabilities,
    };
  }
  const listed = names.map((name) => ({ name, model: name, size: 1, digest: "sim" }));
  if (path === "/api/tags") return { models: listed };
  if (path !== "/api/ps") return null;
  const contextOf = (name: string): number => Math.min(resolve(name).windowTokens, defaultContextTokens);
  return { models: listed.map((model) => ({ ...model, context_length: contextOf(model.name) })) };
}
