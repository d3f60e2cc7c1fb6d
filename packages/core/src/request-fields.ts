import { closedSchema, requiresAllFields } from "./closed-schema.ts";
import type { Fields } from "./json-object.ts";
import type { OutputFormat, ToolChoice } from "./ports.ts";
import type { LimitedApi } from "./provider-limits.ts";

/** Lists the choices beside `auto` that each wire format has. */
export const wireToolChoices: Readonly<Record<LimitedApi, readonly ("none" | "required" | "tool")[]>> = {
  anthropic: ["none", "required", "tool"],
  openai: ["none", "required", "tool"],
  "openai-responses": ["none", "required", "tool"],
  // Ollama has no field for the choice. A request without tools has the effect of `none`.
  ollama: ["none"],
  gemini: ["none", "required", "tool"],
  mistral: ["none", "required", "tool"],
  // Converse has no `none`, and refuses a request whose history has calls when it brings no tools.
  bedrock: ["required", "tool"],
};

/** Returns the name of a choice in `ChatModel.toolChoices`; null for `auto`, which every model has. */
export function choiceName(choice: ToolChoice): "none" | "required" | "tool" | null {
  if (typeof choice === "object") return "tool";
  return choice === "auto" ? null : choice;
}

type NamedChoices = Readonly<Record<"auto" | "none" | "required", Fields>> & { tool(name: string): Fields };

function choices(field: string, named: Readonly<Record<"auto" | "none" | "required", unknown>>): NamedChoices {
  const { auto, none, required } = named;
  return {
    auto: { [field]: auto },
    none: { [field]: none },
    required: { [field]: required },
    tool: (name) => ({ [field]: { type: "function", function: { name } } }),
  };
}

const callingConfig = (config: Fields): Fields => ({ toolConfig: { functionCallingConfig: config } });

const toolChoices: Readonly<Record<LimitedApi, NamedChoices>> = {
  anthropic: {
    auto: { tool_choice: { type: "auto" } },
    none: { tool_choice: { type: "none" } },
    required: { tool_choice: { type: "any" } },
    tool: (name) => ({ tool_choice: { type: "tool", name } }),
  },
  openai: choices("tool_choice", { auto: "auto", none: "none", required: "required" }),
  "openai-responses": {
    ...choices("tool_choice", { auto: "auto", none: "none", required: "required" }),
    tool: (name) => ({ tool_choice: { type: "function", name } }),
  },
  ollama: { auto: {}, none: {}, required: {}, tool: () => ({}) },
  gemini: {
    auto: callingConfig({ mode: "AUTO" }),
    none: callingConfig({ mode: "NONE" }),
    required: callingConfig({ mode: "ANY" }),
    tool: (name) => callingConfig({ mode: "ANY", allowedFunctionNames: [name] }),
  },
  mistral: choices("tool_choice", { auto: "auto", none: "none", required: "any" }),
  bedrock: {
    auto: { toolChoice: { auto: {} } },
    none: {},
    required: { toolChoice: { any: {} } },
    tool: (name) => ({ toolChoice: { tool: { name } } }),
  },
};

/** Returns the fields of a request that carry the choice. */
export function toolChoiceFields(target: LimitedApi, choice: ToolChoice): Fields {
  const named = toolChoices[target];
  return typeof choice === "object" ? named.tool(choice.tool) : named[choice];
}

function openAiFormat({ name, schema }: OutputFormat): Fields {
  const closed = closedSchema(schema);
  const isStrict = closed !== null && requiresAllFields(closed);
  return { name, schema: isStrict ? closed : schema, strict: isStrict };
}

const outputs: Readonly<Record<LimitedApi, (format: OutputFormat) => Fields | null>> = {
  anthropic: ({ schema }) => {
    const closed = closedSchema(schema);
    return closed === null ? null : { output_config: { format: { type: "json_schema", schema: closed } } };
  },
  openai: (format) => ({ response_format: { type: "json_schema", json_schema: openAiFormat(format) } }),
  "openai-responses": (format) => ({ text: { format: { type: "json_schema", ...openAiFormat(format) } } }),
  ollama: ({ schema }) => ({ format: schema }),
  // The fields are those of `config` in Google's SDK; over HTTP they stand in `generationConfig`.
  gemini: ({ schema }) => ({ responseMimeType: "application/json", responseJsonSchema: schema }),
  mistral: (format) => ({ response_format: { type: "json_schema", json_schema: openAiFormat(format) } }),
  bedrock: ({ name, schema }) => {
    const closed = closedSchema(schema);
    if (closed === null) return null;
    const jsonSchema = { name, schema: JSON.stringify(closed) };
    return { outputConfig: { textFormat: { type: "json_schema", structure: { jsonSchema } } } };
  },
};

/** Returns the fields that ask for an answer in JSON; null when the provider's JSON mode cannot take the schema. */
export function outputFields(target: LimitedApi, format: OutputFormat): Fields | null {
  return outputs[target](format);
}
