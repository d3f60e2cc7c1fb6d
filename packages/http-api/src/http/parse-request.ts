import { nearestName, refused } from "@throughline/core/internal";
import { z } from "zod";

type Place = "query" | "body";

/**
 * Parses the query with its schema. A repeated name is refused, because two parsers could take two different values; a
 * name whose schema is a list takes every value.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function parseQuery(schema: z.ZodObject, text: string): unknown {
  const given: Record<string, string | readonly string[]> = {};
  const asked = new URLSearchParams(text);
  for (const [name, one] of asked) {
    const isList = takesList(schema, name);
    if (Object.hasOwn(given, name)) {
      if (isList) continue;
      throw refused("INPUT_INVALID", `The query names ${shown(name)} more than once.`, { path: name });
    }
    const value = isList ? asked.getAll(name) : one;
    Object.defineProperty(given, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return parseWith(schema, given, "query");
}

function takesList({ shape }: z.ZodObject, name: string): boolean {
  const schema = Object.hasOwn(shape, name) ? shape[name] : undefined;
  return (schema instanceof z.ZodExactOptional ? schema.unwrap() : schema) instanceof z.ZodArray;
}

/**
 * Limits the items of a list in the body. The check comes before the schema, because the schema validates every item
 * before it counts them.
 */
const mostItems = 100_000;

/** @throws {ThroughlineError} REQUEST_TOO_LARGE for a list in the body that no route takes */
export function assertShortLists(body: unknown): void {
  const members = typeof body === "object" && body !== null ? Object.entries(body) : [];
  const long = members.find(([, value]) => Array.isArray(value) && value.length > mostItems);
  if (long === undefined) return;
  const message = `${shown(long[0])} of the body has more than ${mostItems} items.`;
  throw refused("REQUEST_TOO_LARGE", message, { path: long[0], limit: mostItems });
}

/** @throws {ThroughlineError} INPUT_INVALID */
export function parseWith(schema: z.ZodType, value: unknown, place: Place): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw refusal(issue, schema, place);
}

function refusal(issue: z.core.$ZodIssue | undefined, schema: z.ZodType, place: Place): Error {
  if (issue === undefined) return refused("INPUT_INVALID", `The ${place} is not what the route takes.`);
  const path = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    const [name = ""] = issue.keys;
    const known = knownNames(schema, issue.path);
    const nearest = nearestName(name, known);
    const hint = nearest === null ? `it takes ${known.map(shown).join(", ")}` : `did you mean ${shown(nearest)}?`;
    const message = `The ${place} does not take ${shown(path === "" ? name : `${path}.${name}`)}; ${hint}`;
    return refused("INPUT_INVALID", message.endsWith("?") ? message : `${message}.`, { path: name, nearest });
  }
  const at = path === "" ? `The ${place}` : `${shown(path)} of the ${place}`;
  return refused("INPUT_INVALID", `${at} is not valid: ${issue.message}.`, { path });
}

function knownNames(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let at: unknown = schema;
  for (const part of path) {
    const shape = shapeOf(at);
    at = shape?.[String(part)] ?? (at as { readonly element?: unknown }).element;
  }
  return Object.keys(shapeOf(at) ?? {});
}

function shapeOf(schema: unknown): Readonly<Record<string, unknown>> | null {
  for (let at = schema; typeof at === "object" && at !== null;) {
    const { shape, def } = at as { readonly shape?: unknown; readonly def?: { readonly innerType?: unknown } };
    if (typeof shape === "object" && shape !== null) return shape as Readonly<Record<string, unknown>>;
    at = def?.innerType;
  }
  return null;
}

function shown(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60).toWellFormed()}…` : name);
}
