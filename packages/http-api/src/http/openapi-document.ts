import { errorCodes } from "@throughline/core/internal";
import type { ErrorCode } from "@throughline/core";
import { z } from "zod";
import { scopes } from "../security/scopes.ts";
import { statusOf } from "@throughline/gateway/internal";
import type { RouteDefinition } from "./route.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** Lists the codes that every route may answer with, because the checks before the route or the store can fail. */
export const everywhere: readonly ErrorCode[] = [
  "INPUT_INVALID",
  "KEY_INVALID",
  "KEY_AGENT_MISMATCH",
  "AGENT_ID_INVALID",
  "NAMESPACE_INVALID",
  "UNAUTHENTICATED",
  "FORBIDDEN",
  "SESSION_NOT_FOUND",
  "ORIGIN_REFUSED",
  "HOST_REFUSED",
  "REQUEST_TIMEOUT",
  "REQUEST_TOO_LARGE",
  "RATE_LIMITED",
  "INTERNAL",
  "STORE_IO",
  "STORE_UNREACHABLE",
  "STORE_FULL",
  "SERVER_DRAINING",
];

const problemSchema: JsonObject = {
  type: "object",
  description: "RFC 9457, with the fields of an error of the command line.",
  required: ["type", "title", "status", "detail", "instance", "kind", "code", "message", "remedy", "retryable"],
  properties: {
    type: { type: "string", description: "where the code is explained" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
    instance: { type: "string", description: "the id of the request, as the log names it" },
    kind: { const: "error" },
    code: { type: "string" },
    message: { type: "string" },
    remedy: { type: "string", description: "what to do next" },
    retryable: { type: "boolean" },
    outcome: {
      anyOf: [{ enum: ["not-applied", "unknown"] }, { type: "null" }],
      description: "of a write: `unknown` says that the same request must be repeated to learn it",
    },
    details: { type: "object", additionalProperties: true },
  },
};

/** Builds the OpenAPI 3.1 document from the schemas that check the requests, so that the two cannot differ. */
export function openApiDocument(routes: readonly RouteDefinition[], version: string): JsonObject {
  const components: Record<string, unknown> = { problem: problemSchema };
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = `/api/v1${route.path}`;
    (paths[path] ??= {})[route.method.toLowerCase()] = operationOf(route, components);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Throughline",
      version,
      description: "Sessions of AI agents over HTTP. Fields are added, never renamed or removed.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "http://127.0.0.1:4788" }],
    security: [{ token: [] }],
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(components).toSorted(([one], [other]) => (one < other ? -1 : 1))),
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: `A token with one of the scopes ${scopes.join(", ")}.` },
      },
    },
  };
}

function operationOf(route: RouteDefinition, components: Record<string, unknown>): JsonObject {
  const { id, summary, description, scope, isAlsoRead = false, body, answers } = route;
  const scopeText = isAlsoRead ? `Scopes: \`${scope}\` and \`read\`.` : `Scope: \`${scope}\`.`;
  const text = [description, scopeText].filter((part) => part !== undefined).join("\n\n");
  const content = (types: readonly string[], schema: JsonObject): JsonObject =>
    Object.fromEntries(types.map((type) => [type, { schema: type === lines ? linesSchema : schema }]));
  return {
    operationId: id,
    summary,
    description: text,
    parameters: [...pathParameters(route.path), ...queryParameters(route, components), ...headerParameters(route)],
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.isOptional !== true,
            content: content(body.types ?? ["application/json"], schemaOf(body.schema, "input", components)),
          },
        }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(
          ([status, { description: what, schema, type = "application/json", types = [type] }]) => {
            const shape = schema === undefined ? null : schemaOf(schema, "output", components);
            if (shape === null && type === "application/json") return [status, { description: what }];
            const all = isList(shape) ? [...types, lines] : types;
            return [status, { description: what, content: content(all, shape ?? { type: "string" }) }];
          },
        ),
      ),
      ...problemsOf(route),
    },
  };
}

const lines = "application/x-ndjson";
const linesSchema: JsonObject = {
  type: "string",
  description:
    "JSON, an object a line. An answer gives the items of the list and a line of kind `end`: without that it was cut.",
};

/** Returns whether the schema is a list, because lists are also available as NDJSON lines. */
function isList(schema: JsonObject | null): boolean {
  const { kind } = (schema?.["properties"] ?? {}) as { readonly kind?: { readonly const?: unknown } };
  return kind?.const === "list";
}

const parameterForms: Readonly<Record<string, JsonObject>> = {
  session: { minLength: 1 },
  fence: { pattern: "^[0-9]{1,15}$" },
  id: { minLength: 1 },
  "idempotency-key": { pattern: "^[!-~]{1,200}$" },
  "throughline-fence": { pattern: "^[0-9]{1,15}$" },
  "if-match": { pattern: '^"[0-9]{1,15}"$' },
  "last-event-id": { maxLength: 8192 },
};

const parameterTexts: Readonly<Record<string, string>> = {
  session: "The key, percent-encoded, or `~` and the key in base64url.",
  fence: "The fence of the turn.",
  id: "The id.",
};

function pathParameters(path: string): readonly JsonObject[] {
  return Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    description: parameterTexts[name] ?? "",
    schema: { type: "string", ...parameterForms[name] },
  }));
}

function queryParameters({ query }: RouteDefinition, components: Record<string, unknown>): readonly JsonObject[] {
  if (query === undefined) return [];
  // In the output schema, numbers and flags have the type that the handler receives. The input schema would show them
  // as strings.
  const { properties = {}, required = [] } = schemaOf(query, "output", components) as {
    readonly properties?: Readonly<Record<string, JsonObject>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: "query",
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema,
  }));
}

function headerParameters({ headers = {} }: RouteDefinition): readonly JsonObject[] {
  return Object.entries(headers).map(([name, description]) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string", ...parameterForms[name] },
  }));
}

function problemsOf({ errors, body, answers }: RouteDefinition): JsonObject {
  const types: readonly ErrorCode[] = body === undefined ? [] : ["MEDIA_TYPE_UNSUPPORTED"];
  const codes = [...new Set([...errors, ...types, ...everywhere])];
  const byStatus = Map.groupBy(codes, statusOf);
  return Object.fromEntries(
    [...byStatus]
      .filter(([status]) => answers[status] === undefined)
      .toSorted(([one], [other]) => one - other)
      .map(([status, found]) => [
        status,
        {
          description: found
            .toSorted()
            .map((code) => `\`${code}\`: ${errorCodes[code].summary}`)
            .join("\n\n"),
          content: { "application/problem+json": { schema: { $ref: "#/components/schemas/problem" } } },
        },
      ]),
  );
}

/** Converts a schema to JSON schema. A schema with an id becomes a component, so that clients get a named type. */
function schemaOf(schema: z.ZodType, io: "input" | "output", components: Record<string, unknown>): JsonObject {
  const {
    $schema: _dialect,
    $defs = {},
    id,
    ...own
  } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as {
    readonly $schema?: unknown;
    readonly $defs?: Readonly<Record<string, JsonObject>>;
    readonly id?: unknown;
  };
  for (const [name, { id: _id, ...definition }] of Object.entries($defs)) components[name] ??= hoisted(definition);
  if (typeof id !== "string") return hoisted(own);
  components[id] ??= hoisted(own);
  return { $ref: `#/components/schemas/${id}` };
}

/**
 * Rewrites references to the components of the document. An object without members gets `additionalProperties: true`,
 * because generators would otherwise treat it as empty.
 */
function hoisted(schema: JsonObject): JsonObject {
  const text = JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/');
  return JSON.parse(text, (_, value: unknown) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const isOpen = "type" in value && value.type === "object" && !("properties" in value);
    return isOpen && !("additionalProperties" in value) ? { ...value, additionalProperties: true } : value;
  }) as JsonObject;
}
