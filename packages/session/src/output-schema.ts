import type { AgentTool } from "@throughline/core";
import {
  type CheckedSchema,
  type JsonObjectSchema,
  type OutputFormat,
  readSchema,
  type SchemaInput,
  type SchemaValue,
} from "@throughline/core/internal";

/**
 * Describes the answer of a turn by a Standard Schema, such as a schema of zod, valibot or arktype, or by JSON Schema.
 * `jsonSchema` is for libraries that make no JSON Schema themselves.
 */
export type TurnOutputSchema =
  | SchemaInput
  | {
      /** Checks and types the answer. */
      readonly schema: Extract<SchemaInput, { readonly "~standard": unknown }>;
      /** Describes the answer for the model. */
      readonly jsonSchema: JsonObjectSchema;
    };

/** Types the checked answer of a turn. */
export type TurnOutputValue<Schema extends TurnOutputSchema> = Schema extends SchemaInput
  ? SchemaValue<Schema>
  : Schema extends { readonly schema: infer Standard extends SchemaInput }
    ? SchemaValue<Standard>
    : unknown;

/** States how a call asked for the answer, so that the request can be rebuilt. */
export interface RecordedOutput extends OutputFormat {
  /** States whether the provider's JSON mode asked, or a tool with the name and the schema of the answer. */
  readonly as: "json" | "tool";
}

/** Describes the tool that takes the answer where the provider has no JSON mode for the request. */
export function outputTool({ name, schema }: OutputFormat): AgentTool["definition"] {
  return {
    name,
    description: "Gives your final answer. Call it once, when the answer is complete.",
    inputSchema: schema,
  };
}

/** Reads the `output` option. @throws {ThroughlineError} INPUT_INVALID */
export function readOutputSchema(output: TurnOutputSchema): CheckedSchema {
  const isPair = typeof output === "object" && "schema" in output && "jsonSchema" in output;
  const { schema, jsonSchema } = isPair
    ? (output as { readonly schema: SchemaInput; readonly jsonSchema: JsonObjectSchema })
    : { schema: output as SchemaInput, jsonSchema: undefined };
  return readSchema(schema, {
    call: "runTurn",
    argument: "`output`",
    whole: "answer",
    jsonSchema,
    remedy: "Pass the JSON Schema too: `output: { schema, jsonSchema }`.",
  });
}
