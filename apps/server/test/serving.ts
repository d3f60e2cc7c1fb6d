import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { z } from "zod";
import type { Scope, TokenRights } from "@throughline/http-api/internal";
import type { ServerOptions } from "@throughline/server";
import { createSqliteStore } from "@throughline/store-sqlite";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";
import { type ForeignHost, type StartedServer, startServer } from "./start-server.ts";

/** A server in this process, with a token that may do everything. */
export interface Serving {
  readonly server: StartedServer;
  readonly url: string;
  readonly token: string;
  readonly log: () => string;
  /** A token with other rights. */
  tokenOf(rights: Partial<TokenRights>): Promise<string>;
  /** Sends a request, and holds its answer to the document. */
  ask(method: string, path: string, options?: AskOptions): Promise<Answered>;
  /** Makes a session that has these records. @default one note */
  begin(key: string, drafts?: readonly object[], token?: string): Promise<void>;
  close(): Promise<void>;
}

interface AskOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** @default the token that may do everything; null: none */
  readonly token?: string | null;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Of JSON; null for anything else. */
  readonly body: Readonly<Record<string, unknown>>;
}

const allScopes: readonly Scope[] = ["read", "write", "delete", "metrics", "admin"];
const many = 1_000_000;
const manyRequests = {
  requestsPerMinute: many,
  requestBurst: many,
  gatewayCallsPerMinute: many,
  gatewayBurst: many,
};

/** @param host where the API is mounted; by default the server of this run */
export async function serve(options: Partial<ServerOptions> = {}, host?: ForeignHost): Promise<Serving> {
  const lines: string[] = [];
  const folder = mkdtempSync(join(quickFolder(), "throughline-server-"));
  const path = join(folder, "sessions.db");
  const server = await startServer(
    {
      openStore: (onEvent) => createSqliteStore({ path, onEvent }),
      port: 0,
      log: { write: (line) => void lines.push(line) },
      ...options,
      limits: { ...manyRequests, ...options.limits },
    },
    host,
  );
  const everything = { namespace: "*", agents: "*", scopes: allScopes, expiresAtMs: null } as const;
  const tokenOf = async (rights: Partial<TokenRights>): Promise<string> =>
    (await server.tokens.create({ ...everything, ...rights }, "tests")).text;
  const token = await tokenOf({});
  const askHere: Serving["ask"] = (method, path, asked = {}) => ask(server.url, method, path, { token, ...asked });
  return {
    server,
    url: server.url,
    token,
    log: () => lines.join(""),
    tokenOf,
    ask: askHere,
    begin: async (key, drafts = [{ type: "note" }], own = token) => {
      await askHere("PUT", `/sessions/${key}`, { body: {}, token: own });
      await askHere("POST", `/sessions/${key}/records`, { body: { drafts }, token: own });
    },
    close: async () => {
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function ask(url: string, method: string, path: string, options: AskOptions): Promise<Answered> {
  const { body, headers = {}, token = null } = options;
  const response = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const type = response.headers.get("content-type") ?? "";
  const isJson = /^application\/(problem\+)?json/.test(type);
  assertDocumented(method, path, { status: response.status, type, text: isJson ? text : null });
  const parsed = isJson ? (JSON.parse(text) as Answered["body"]) : {};
  return { status: response.status, headers: response.headers, text, body: parsed };
}

type JsonSchema = Exclude<Parameters<typeof z.fromJSONSchema>[0], boolean>;

interface Media {
  readonly schema: Readonly<Record<string, unknown>>;
}

interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, Media>> }>>;
}

export const document = JSON.parse(readFileSync(join(import.meta.dirname, "../../../docs/openapi.json"), "utf8")) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
};

const definitions = inside(document.components.schemas) as NonNullable<JsonSchema["$defs"]>;
const validators = new Map<string, z.ZodType>();
const answered = new Set<string>();

/** The operations of the document that a test has had an answer of, each with its status. */
export function answeredOperations(): ReadonlySet<string> {
  return answered;
}

function inside(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replaceAll("#/components/schemas/", "#/$defs/"));
}

function operationOf(method: string, path: string): Operation | null {
  const segments = `/api/v1${path.split("?")[0] ?? ""}`.split("/");
  const fits = (pattern: string): boolean => {
    const parts = pattern.split("/");
    return (
      parts.length === segments.length &&
      parts.every((part, index) => part === segments[index] || (part.startsWith("{") && segments[index] !== ""))
    );
  };
  const found = Object.keys(document.paths).filter(fits);
  // A literal segment comes before a parameter.
  const [best] = found.toSorted((one, other) => one.split("{").length - other.split("{").length);
  return best === undefined ? null : (document.paths[best]?.[method.toLowerCase()] ?? null);
}

/** Fails for an answer that the document does not have. */
function assertDocumented(
  method: string,
  path: string,
  { status, type, text }: { readonly status: number; readonly type: string; readonly text: string | null },
): void {
  const operation = operationOf(method, path);
  if (operation === null) return;
  const response = operation.responses[String(status)];
  expect([method, path, status, response !== undefined]).toEqual([method, path, status, true]);
  answered.add(`${operation.operationId} ${status}`);
  const media = response?.content?.[type.split(";")[0] ?? ""];
  if (text === null || media === undefined) return;
  const name = `${operation.operationId} ${status}`;
  const validator =
    validators.get(name) ?? z.fromJSONSchema({ ...(inside(media.schema) as object), $defs: definitions });
  validators.set(name, validator);
  const { success, error } = validator.safeParse(JSON.parse(text));
  expect([name, success ? [] : error.issues]).toEqual([name, []]);
}
