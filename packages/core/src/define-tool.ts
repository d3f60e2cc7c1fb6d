import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import type { AgentTool, AgentToolCall, AgentToolResult } from "./ports.ts";
import { issueText, readSchema, type JsonObjectSchema, type SchemaInput, type SchemaValue } from "./checked-schema.ts";
import { quote } from "./session-id.ts";

/** Describes the tool that `defineTool` creates. */
export interface DefineToolOptions<Input extends SchemaInput> {
  /**
   * Names the tool for the model, with letters, digits, `_`, `-` and `.`. Names that a provider does not accept are
   * mapped.
   */
  readonly name: string;
  /** Describes the tool, so that the model can decide when to call it. */
  readonly description: string;
  /** Describes the arguments, which are checked before `run` is called. */
  readonly input: Input;
  /** Holds the JSON Schema for the model, when the library of `input` cannot create it. @default made from `input` */
  readonly inputSchema?: JsonObjectSchema | undefined;
  /**
   * Runs a call. Return a result with `isError` for a failure that the model can act on. An error that is thrown
   * becomes such a result too.
   */
  run(args: SchemaValue<Input>, call: AgentToolCall): string | AgentToolResult | Promise<string | AgentToolResult>;
}

const kinds: OptionTable<DefineToolOptions<SchemaInput>> = {
  name: optionKinds.required(optionKinds.filledText),
  description: optionKinds.required(optionKinds.text),
  // A schema of arktype is a function, so both types are accepted.
  input: optionKinds.required(optionKinds.either(optionKinds.object, optionKinds.callback)),
  inputSchema: optionKinds.object,
  run: optionKinds.required(optionKinds.callback),
};

/**
 * Creates a tool whose arguments are typed by its schema and checked before it runs. Arguments that do not fit are
 * answered with the reason, so that the model can correct them; `run` is not called.
 *
 * @throws {ThroughlineError} INPUT_INVALID for an option that is missing, unknown or of another type, and for a schema
 * from
 *   which no JSON Schema of an object can be made
 * @example
 * const weather = defineTool({
 *   name: "weather",
 *   description: "The weather of a city.",
 *   input: z.object({ city: z.string() }),
 *   run: ({ city }) => `Sunny in ${city}.`,
 * });
 */
export function defineTool<const Input extends SchemaInput>(tool: DefineToolOptions<Input>): AgentTool {
  assertKnownOptions<DefineToolOptions<SchemaInput>>("defineTool", tool, kinds, "tool");
  const { name, description, input } = tool;
  const schema = readSchema(input, {
    call: "defineTool",
    argument: `\`input\` of ${quote(name)}`,
    whole: "arguments",
    jsonSchema: tool.inputSchema,
    remedy: "Pass the JSON Schema as `inputSchema` beside `input`.",
  });
  return {
    definition: { name, description, inputSchema: schema.jsonSchema },
    run: async (args, call) => {
      const checked = await schema.check(args);
      if ("issues" in checked) {
        const content = `The call was not run: ${issueText("arguments", checked.issues[0])}.`;
        return { content, isError: true, details: { reason: "arguments" } };
      }
      return tool.run(checked.value as SchemaValue<Input>, call);
    },
  };
}
