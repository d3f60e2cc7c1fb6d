import { isFields, type Fields } from "./json-object.ts";

/*
 * The JSON modes of the providers compile a schema into a grammar. They accept a part of JSON Schema only: every object
 * is closed and names its fields. Limits of numbers, texts and lists move into the description, where the model reads
 * them. The check of the answer applies the whole schema in every case.
 */

const copied: ReadonlySet<string> = new Set(["type", "enum", "const", "title", "description", "required"]);
const limits: ReadonlySet<string> = new Set(
  (
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format " +
    "minItems maxItems uniqueItems contentEncoding contentMediaType"
  ).split(" "),
);
/** These keywords neither describe a value nor limit it. */
const ignored: ReadonlySet<string> = new Set(["$schema", "$id", "default", "examples", "deprecated", "$comment"]);

/** Recursive schemas end here too: no provider accepts a schema of this depth. */
const maxDepth = 32;

/**
 * Returns the schema in the part of JSON Schema that the providers' JSON modes accept. Null when it has no form there,
 * such as an object with arbitrary keys.
 */
export function closedSchema(schema: Fields): Fields | null {
  const definitions = isFields(schema["$defs"]) ? schema["$defs"] : {};
  const closed = closedAt(schema, definitions, 0);
  return closed === null || closed["type"] !== "object" ? null : closed;
}

/** Returns true when the closed schema, as OpenAI's strict mode asks for, requires every field of every object. */
export function requiresAllFields(closed: unknown): boolean {
  if (Array.isArray(closed)) return closed.every(requiresAllFields);
  if (!isFields(closed)) return true;
  const { properties, required } = closed;
  const names = isFields(properties) ? Object.keys(properties) : [];
  const listed: readonly unknown[] = Array.isArray(required) ? required : [];
  if (names.some((name) => !listed.includes(name))) return false;
  const parts = [...(isFields(properties) ? Object.values(properties) : []), closed["items"], closed["anyOf"]];
  return parts.every(requiresAllFields);
}

function closedAt(schema: unknown, definitions: Fields, depth: number): Fields | null {
  if (!isFields(schema) || depth > maxDepth) return null;
  const reference = schema["$ref"];
  if (reference !== undefined) {
    const named = typeof reference === "string" ? /^#\/\$defs\/([^/]{1,200})$/.exec(reference)?.[1] : undefined;
    return named === undefined ? null : closedAt(definitions[named], definitions, depth + 1);
  }
  const closed: Record<string, unknown> = {};
  const notes: string[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    if (copied.has(keyword)) closed[keyword] = value;
    else if (limits.has(keyword)) notes.push(`${keyword}: ${JSON.stringify(value)}`);
    else if (keyword === "anyOf" || keyword === "oneOf") {
      const variants = closedList(value, definitions, depth + 1);
      if (variants === null) return null;
      closed["anyOf"] = variants;
    } else if (keyword === "items") {
      closed["items"] = closedAt(value, definitions, depth + 1);
      if (closed["items"] === null) return null;
    } else if (!ignored.has(keyword) && !objectKeywords.has(keyword)) return null;
  }
  if (notes.length > 0) closed["description"] = [closed["description"], notes.join(", ")].filter(Boolean).join(" ");
  if (closed["type"] === "object") return closedObject(schema, closed, definitions, depth);
  const isDescribed = ["type", "enum", "const", "anyOf"].some((keyword) => keyword in closed);
  return isDescribed && (closed["type"] !== "array" || "items" in closed) ? closed : null;
}

const objectKeywords: ReadonlySet<string> = new Set(["properties", "additionalProperties", "$defs"]);

function closedObject(schema: Fields, closed: Fields, definitions: Fields, depth: number): Fields | null {
  const { properties, additionalProperties } = schema;
  // An object without named fields, or with arbitrary other fields, cannot be closed without losing them.
  if (!isFields(properties) || isFields(additionalProperties) || additionalProperties === true) return null;
  const entries = Object.entries(properties).map(
    ([name, value]) => [name, closedAt(value, definitions, depth + 1)] as const,
  );
  if (entries.some(([, value]) => value === null)) return null;
  return { ...closed, properties: Object.fromEntries(entries), additionalProperties: false };
}

function closedList(list: unknown, definitions: Fields, depth: number): readonly Fields[] | null {
  if (!Array.isArray(list)) return null;
  const closed = list.map((one) => closedAt(one, definitions, depth));
  return closed.every((one) => one !== null) ? closed : null;
}
