import { refused } from "./refused.ts";
import type {
  StandardJsonSchemaProps,
  StandardSchemaIssue,
  StandardSchemaOutput,
  StandardSchemaV1,
} from "./standard-schema.ts";
import { ThroughlineError } from "./throughline-error.ts";
import { argumentProblem } from "./tool-arguments.ts";

/** Describes an object by JSON Schema. */
export type JsonObjectSchema = Readonly<Record<string, unknown>> & {
  /** Arguments and structured answers are always an object. */
  readonly type: "object";
};

/** Describes an object by a Standard Schema, such as a schema of zod, valibot or arktype, or by JSON Schema. */
export type SchemaInput = StandardSchemaV1 | JsonObjectSchema;

/** Types the checked value of a schema. */
export type SchemaValue<Input extends SchemaInput> = Input extends StandardSchemaV1
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

/** Describes a part of a value that does not fit its schema. */
export interface SchemaIssue {
  /** Leads to the part, such as `.items[2].price`; empty for the value itself. */
  readonly path: string;
  /** Describes the problem in the words of the schema's library. */
  readonly message: string;
}

/** Holds a schema in both forms that are needed: JSON Schema for the model, and a check for its answer. */
export interface CheckedSchema {
  readonly jsonSchema: JsonObjectSchema;
  /** Returns the value in the schema's own form, or at least one issue. */
  check(value: unknown): Promise<Checked>;
}

interface SchemaPlace {
  /** Names the function that received the schema. */
  readonly call: string;
  readonly argument: string;
  /** Names the value in sentences about it: `arguments` or `answer`. */
  readonly whole: string;
  /** Holds the JSON Schema that the caller passed beside the schema. */
  readonly jsonSchema: JsonObjectSchema | undefined;
  /** States how to pass a JSON Schema. */
  readonly remedy: string;
}

/**
 * Reads a schema of an object.
 *
 * @throws {ThroughlineError} INPUT_INVALID for a schema from which no JSON Schema of an object can be made
 */
export function readSchema(input: SchemaInput, place: SchemaPlace): CheckedSchema {
  const standard = isStandardSchema(input) ? input : null;
  const made = place.jsonSchema ?? (standard === null ? input : jsonSchemaOf(standard, place));
  const jsonSchema = objectSchema(made, place);
  return {
    jsonSchema,
    check: async (value) =>
      standard === null ? checkedByJsonSchema(value, jsonSchema, place.whole) : checkedBy(standard, value, place.whole),
  };
}

/** Describes one issue for the model, as a sentence without its period. */
export function issueText(whole: string, { path, message }: SchemaIssue): string {
  return path === "" ? message : `${whole}${path}: ${message}`;
}

type Checked = { readonly value: unknown } | { readonly issues: readonly [SchemaIssue, ...SchemaIssue[]] };

function checkedByJsonSchema(value: unknown, schema: JsonObjectSchema, whole: string): Checked {
  const problem = argumentProblem(value, schema, whole);
  return problem === null ? { value } : { issues: [{ path: "", message: problem }] };
}

/** No model profits from more issues at once, and a library may report one for each element of a long list. */
const maxIssues = 20;

async function checkedBy(schema: StandardSchemaV1, value: unknown, whole: string): Promise<Checked> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return { value: result.value };
  // Libraries and checks in plain JavaScript may return any value, and their messages may repeat the value.
  const given: unknown = result.issues;
  const issues = (Array.isArray(given) ? (given as readonly unknown[]) : []).slice(0, maxIssues).flatMap(readIssue);
  const [first = { path: "", message: `its ${whole} do not fit` }, ...others] = issues;
  return { issues: [first, ...others] };
}

function readIssue(issue: unknown): readonly SchemaIssue[] {
  const { message, path } = (issue ?? {}) as Partial<StandardSchemaIssue>;
  if (typeof message !== "string") return [];
  return [{ path: shortened(placeOf(path), 200), message: shortened(message, 1000) }];
}

function placeOf(path: unknown): string {
  const segments: readonly unknown[] = Array.isArray(path) ? path : [];
  return segments.slice(0, 20).reduce<string>((place, segment) => {
    const key = typeof segment === "object" && segment !== null && "key" in segment ? segment.key : segment;
    return place + (typeof key === "number" ? `[${key}]` : `.${String(key)}`);
  }, "");
}

function shortened(text: string, mostLength: number): string {
  return (text.length > mostLength ? `${text.slice(0, mostLength)}…` : text).toWellFormed();
}

function isStandardSchema(input: SchemaInput): input is StandardSchemaV1 {
  return "~standard" in input;
}

/** Newer versions of the schema libraries create JSON Schema themselves; other versions need it beside the schema. */
function jsonSchemaOf(schema: StandardSchemaV1, { call, argument, remedy }: SchemaPlace): unknown {
  const { vendor, jsonSchema } = schema["~standard"] as StandardSchemaV1["~standard"] &
    Partial<StandardJsonSchemaProps>;
  const facts = { outcome: "not-applied" as const, details: { argument, vendor }, remedy };
  if (jsonSchema === undefined)
    throw new ThroughlineError("INPUT_INVALID", `${call}(): ${argument} makes no JSON Schema (${vendor}).`, facts);
  try {
    const { $schema: _version, ...made } = jsonSchema.input({ target: "draft-2020-12" });
    return made;
  } catch (cause) {
    const reason = String((cause as Error | null)?.message ?? cause);
    const message = `${call}(): no JSON Schema can be made from ${argument}: ${reason}`;
    throw new ThroughlineError("INPUT_INVALID", message, { ...facts, cause });
  }
}

/** Arguments and answers have fields with names, so the schema must describe an object. */
function objectSchema(schema: unknown, { call, argument }: SchemaPlace): JsonObjectSchema {
  if (typeof schema === "object" && schema !== null && "type" in schema && schema.type === "object")
    return schema as JsonObjectSchema;
  throw refused("INPUT_INVALID", `${call}(): ${argument} must describe an object.`, {
    argument,
    expected: "a schema of an object",
  });
}
