import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import type { AgentTool, AgentToolCall, AgentToolResult } from "./ports.ts";
import { refused } from "./refused.ts";
import { quote } from "./session-id.ts";
import type {
  StandardJsonSchemaProps,
  StandardSchemaIssue,
  StandardSchemaOutput,
  StandardSchemaV1,
} from "./standard-schema.ts";
import { ThroughlineError } from "./throughline-error.ts";
import { argumentProblem } from "./tool-arguments.ts";

/** Describes an object by JSON Schema. */
type JsonObjectSchema = Readonly<Record<string, unknown>> & {
  /** Arguments are always an object. */
  readonly type: "object";
};

/**
 * Describes a tool's arguments by a Standard Schema, such as a schema of zod, valibot or arktype, or by JSON Schema.
 */
type ToolInput = StandardSchemaV1 | JsonObjectSchema;

/** Types the checked arguments of a tool. */
type ToolArguments<Input extends ToolInput> = Input extends StandardSchemaV1
  ? StandardSchemaOutput<Input>
  : JsonValueOf<Input>;

/**
 * A JSON Schema that says more than this type can follow becomes `unknown`, so that the caller must check the value.
 */
type JsonValueOf<Schema> = Schema extends { readonly const: infer Value }
  ? Value
  : Schema extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : Schema extends { readonly type: infer Type }
      ? Type extends "string"
        ? string
        : Type extends "number" | "integer"
          ? number
          : Type extends "boolean"
            ? boolean
            : Type extends "null"
              ? null
              : Type extends "array"
                ? readonly JsonValueOf<Schema extends { readonly items: infer Items } ? Items : unknown>[]
                : Type extends "object"
                  ? JsonObjectOf<Schema>
                  : unknown
      : unknown;

/** Types an object by its JSON Schema. */
type JsonObjectOf<Schema> = Schema extends { readonly properties: infer Properties }
  ? {
      readonly [Name in keyof Properties as Name extends RequiredNames<Schema> ? Name : never]: JsonValueOf<
        Properties[Name]
      >;
    } & {
      readonly [Name in keyof Properties as Name extends RequiredNames<Schema> ? never : Name]?: JsonValueOf<
        Properties[Name]
      >;
    }
  : Readonly<Record<string, unknown>>;

/** Lists the names that a JSON Schema requires. */
type RequiredNames<Schema> = Schema extends { readonly required: readonly (infer Name)[] } ? Name : never;

/** Describes the tool that `defineTool` creates. */
export interface DefineToolOptions<Input extends ToolInput> {
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
  readonly inputSchema?: JsonObjectSchema;
  /**
   * Runs a call. Return a result with `isError` for a failure that the model can act on. An error that is thrown
   * becomes such a result too.
   */
  run(args: ToolArguments<Input>, call: AgentToolCall): string | AgentToolResult | Promise<string | AgentToolResult>;
}

const kinds: OptionTable<DefineToolOptions<ToolInput>> = {
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
export function defineTool<const Input extends ToolInput>(tool: DefineToolOptions<Input>): AgentTool {
  assertKnownOptions<DefineToolOptions<ToolInput>>("defineTool", tool, kinds, "tool");
  const { name, description, input } = tool;
  const standard = isStandardSchema(input) ? input : null;
  const inputSchema = objectSchema(
    name,
    tool.inputSchema ?? (standard === null ? input : jsonSchemaOf(name, standard)),
  );
  return {
    definition: { name, description, inputSchema },
    run: async (args, call) => {
      const checked = standard === null ? checkedByJsonSchema(args, inputSchema) : await checkedBy(standard, args);
      if ("problem" in checked) {
        const content = `The call was not run: ${checked.problem}.`;
        return { content, isError: true, details: { reason: "arguments" } };
      }
      return tool.run(checked.args as ToolArguments<Input>, call);
    },
  };
}

type Checked = { readonly args: unknown } | { readonly problem: string };

function checkedByJsonSchema(args: Readonly<Record<string, unknown>>, schema: JsonObjectSchema): Checked {
  const problem = argumentProblem(args, schema);
  return problem === null ? { args } : { problem };
}

async function checkedBy(schema: StandardSchemaV1, args: unknown): Promise<Checked> {
  const result = await schema["~standard"].validate(args);
  if (result.issues === undefined) return { args: result.value };
  // Libraries and checks in plain JavaScript may return any value, and their messages may repeat the arguments.
  const issues: unknown = result.issues;
  const issue = Array.isArray(issues) ? (issues[0] as Partial<StandardSchemaIssue> | null | undefined) : null;
  const message = issue?.message;
  if (typeof message !== "string") return { problem: "its arguments do not fit" };
  return { problem: `${shortened(placeOf(issue?.path), 200)}: ${shortened(message, 1000)}` };
}

function placeOf(path: unknown): string {
  const segments: readonly unknown[] = Array.isArray(path) ? path : [];
  return segments.slice(0, 20).reduce<string>((place, segment) => {
    const key = typeof segment === "object" && segment !== null && "key" in segment ? segment.key : segment;
    return place + (typeof key === "number" ? `[${key}]` : `.${String(key)}`);
  }, "arguments");
}

function shortened(text: string, mostLength: number): string {
  return (text.length > mostLength ? `${text.slice(0, mostLength)}…` : text).toWellFormed();
}

function isStandardSchema(input: ToolInput): input is StandardSchemaV1 {
  return "~standard" in input;
}

/** Newer versions of the schema libraries create JSON Schema themselves; other versions need `inputSchema`. */
function jsonSchemaOf(name: string, schema: StandardSchemaV1): unknown {
  const { vendor, jsonSchema } = schema["~standard"] as StandardSchemaV1["~standard"] &
    Partial<StandardJsonSchemaProps>;
  const remedy = "Pass the JSON Schema as `inputSchema` beside `input`.";
  const details = { argument: "input", vendor };
  if (jsonSchema === undefined)
    throw new ThroughlineError(
      "INPUT_INVALID",
      `defineTool(): \`input\` of ${quote(name)} makes no JSON Schema (${vendor}).`,
      {
        outcome: "not-applied",
        details,
        remedy,
      },
    );
  try {
    const { $schema: _version, ...made } = jsonSchema.input({ target: "draft-2020-12" });
    return made;
  } catch (cause) {
    throw new ThroughlineError(
      "INPUT_INVALID",
      `defineTool(): no JSON Schema can be made from \`input\` of ${quote(name)}: ${String((cause as Error | null)?.message ?? cause)}`,
      { outcome: "not-applied", cause, details, remedy },
    );
  }
}

/** Models pass arguments by name, so the schema must describe an object. */
function objectSchema(name: string, schema: unknown): JsonObjectSchema {
  if (typeof schema === "object" && schema !== null && "type" in schema && schema.type === "object")
    return schema as JsonObjectSchema;
  throw refused("INPUT_INVALID", `defineTool(): \`input\` of ${quote(name)} must describe an object.`, {
    argument: "input",
    expected: "a schema of an object",
  });
}
