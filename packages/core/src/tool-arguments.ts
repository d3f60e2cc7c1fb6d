import { isFields, type Fields } from "./json-object.ts";

/**
 * Returns the reason why arguments do not fit a tool's schema, for the model to read; null when they fit. The checks
 * cover types, required and unknown fields, enumerations and elements. A keyword with an unexpected value, as in
 * schemas of older drafts and generators, is ignored.
 *
 * @param whole names the value itself
 */
export function argumentProblem(value: unknown, schema: Fields, whole = "arguments"): string | null {
  return problemAt(whole, value, { type: "object", ...schema });
}

function problemAt(place: string, value: unknown, schema: unknown): string | null {
  if (!isFields(schema)) return null;
  const types = [schema["type"]].flat().filter((type) => typeof type === "string");
  if (types.length > 0 && !types.some((type) => isOfType(value, type)))
    return `${place} must be ${types.join(" or ")}, not ${typeName(value)}`;
  const allowed = schema["enum"];
  if (Array.isArray(allowed) && !allowed.some((one) => JSON.stringify(one) === JSON.stringify(value)))
    return `${place} must be one of ${JSON.stringify(allowed)}`;
  if (Array.isArray(value))
    return firstProblem(value.entries(), ([at, item]) => problemAt(`${place}[${at}]`, item, schema["items"]));
  return isFields(value) ? fieldsProblem(place, value, schema) : null;
}

function fieldsProblem(place: string, value: Fields, schema: Fields): string | null {
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const missing = required.find((name) => typeof name === "string" && !Object.hasOwn(value, name));
  if (missing !== undefined) return `${place}.${missing} is missing`;
  const properties = isFields(schema["properties"]) ? schema["properties"] : {};
  const isClosed = schema["additionalProperties"] === false && schema["patternProperties"] === undefined;
  return firstProblem(Object.entries(value), ([name, field]) => {
    if (Object.hasOwn(properties, name)) return problemAt(`${place}.${name}`, field, properties[name]);
    return isClosed ? `${place}.${name} is not an argument` : null;
  });
}

function firstProblem<Item>(items: Iterable<Item>, problemOf: (item: Item) => string | null): string | null {
  for (const item of items) {
    const problem = problemOf(item);
    if (problem !== null) return problem;
  }
  return null;
}

function isOfType(value: unknown, type: string): boolean {
  const actual = typeName(value);
  if (type === "number") return actual === "number" || actual === "integer";
  return actual === type || !["object", "array", "string", "boolean", "null", "integer"].includes(type);
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
}
