import { readSendPolicy } from "@throughline/policy";
import type { PolicyProblem } from "@throughline/policy/internal";
import type { SettingField, SettingKind, SettingValue } from "@throughline/core/internal";
import { z } from "zod";
import { describeKind } from "./setting-definition.ts";

export interface ValueProblem {
  /** The path follows the setting's key: `.1.percent`. */
  readonly path: string;
  readonly value: unknown;
  readonly allowed: string;
  /** Lists the valid field names when the path ends in an unknown field. */
  readonly known?: readonly string[];
}

/**
 * Returns the first problem of a value, or null. This module loads the schema library, so callers import it only when
 * they have a value to check.
 */
export function checkValue(kind: SettingKind, value: SettingValue): ValueProblem | null {
  if (kind.type === "block") return checkBlock(value);
  const parsed = schemaOf(kind).safeParse(value);
  if (parsed.success) return null;
  const issue = parsed.error.issues[0];
  const steps = issue?.path ?? [];
  const unknown = issue?.code === "unrecognized_keys" ? (issue.keys[0] ?? null) : null;
  const at = kindAt(kind, steps);
  const path = [...steps, ...(unknown === null ? [] : [unknown])].map((step) => `.${String(step)}`).join("");
  if (unknown !== null && at.type === "object") {
    const known = at.fields.map(({ key }) => key);
    return { path, value: valueAt(value, [...steps, unknown]), allowed: describeKind(at), known };
  }
  return { path, value: valueAt(value, steps), allowed: describeKind(at) };
}

function schemaOf(kind: Exclude<SettingKind, { type: "block" }>): z.ZodType {
  switch (kind.type) {
    case "text":
      return z.string().min(kind.minLength);
    case "choice":
      return z.enum(kind.choices as [string, ...string[]]);
    case "boolean":
      return z.boolean();
    case "integer":
      return z.int().min(kind.min).max(kind.max);
    case "number":
      return z.number().gt(kind.above).lt(kind.below);
    case "list":
      return z
        .array(schemaOf(kind.of as Exclude<SettingKind, { type: "block" }>))
        .min(kind.minItems)
        .max(kind.maxItems);
    case "map":
      return z
        .record(z.string(), schemaOf(kind.of as Exclude<SettingKind, { type: "block" }>))
        .refine((map) => Object.keys(map).length <= kind.maxEntries);
    case "object":
      return z.strictObject(Object.fromEntries(kind.fields.map((field) => [field.key, fieldSchema(field)])));
  }
}

function fieldSchema({ kind, isRequired }: SettingField): z.ZodType {
  const schema = schemaOf(kind as Exclude<SettingKind, { type: "block" }>);
  return isRequired === true ? schema : schema.optional();
}

function kindAt(kind: SettingKind, steps: readonly PropertyKey[]): SettingKind {
  const [step, ...rest] = steps;
  if (step === undefined) return kind;
  if (kind.type === "list" || kind.type === "map") return kindAt(kind.of, rest);
  const field = kind.type === "object" ? kind.fields.find(({ key }) => key === step) : undefined;
  return field === undefined ? kind : kindAt(field.kind, rest);
}

function valueAt(value: unknown, steps: readonly PropertyKey[]): unknown {
  return steps.reduce<unknown>((at, step) => (at as Readonly<Record<PropertyKey, unknown>> | null)?.[step], value);
}

/** A send policy is the only block. Its own reader accepts or refuses the policy as a whole. */
function checkBlock(value: SettingValue): ValueProblem | null {
  try {
    readSendPolicy(value);
    return null;
  } catch (error) {
    const { problems } =
      (error as { readonly details?: { readonly problems?: readonly PolicyProblem[] } }).details ?? {};
    const problem = problems?.[0];
    if (problem === undefined) throw error;
    const path = problem.path.replaceAll(/\[(\d+)\]/g, ".$1");
    const { value: found, expected: allowed, known } = problem;
    return { path: path === "" ? "" : `.${path}`, value: found, allowed, ...(known === undefined ? {} : { known }) };
  }
}
