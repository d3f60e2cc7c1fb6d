import { assertAgentId, assertNamespace, refused } from "@throughline/core/internal";
import { z } from "zod";
import { json, list } from "../http/answer.ts";
import { route, type ApiRequest, type RouteDefinition } from "../http/route.ts";
import { tokenJson } from "../json-shapes.ts";
import { auditSchema, newTokenSchema, tokenSchema, type WireNewToken } from "../schemas/admin.ts";
import { listOf, queryInteger } from "../schemas/values.ts";
import type { Scope } from "../security/scopes.ts";
import { reservedNamespaces, type TokenInfo, type TokenRights } from "../security/token-store.ts";
import { mostPageRecords } from "./store-routes.ts";

export const adminRoutes: readonly RouteDefinition[] = [
  route({
    id: "listTokens",
    method: "GET",
    path: "/admin/tokens",
    summary: "The tokens of the namespace and the agents that the asking token reaches.",
    scope: "admin",
    answers: { 200: { description: "The tokens, without their secrets.", schema: listOf(tokenSchema) } },
    errors: [],
    handle: async (request) => {
      const tokens = await request.context.tokens.list();
      return list(tokens.filter((token) => isReached(request, token)).map((token) => JSON.stringify(tokenJson(token))));
    },
  }),
  route({
    id: "createToken",
    method: "POST",
    path: "/admin/tokens",
    summary: "Makes a token. Its secret is in this answer only.",
    description:
      "A token reaches at most the namespace and the agents of the one that makes it. Its scopes may be others. `metrics` and `gateway:NAME` reach what all tenants share: a token of one namespace or of some agents gives only those that it has.",
    scope: "admin",
    body: { schema: newTokenSchema },
    answers: { 201: { description: "The token with its secret.", schema: tokenSchema } },
    errors: ["NAMESPACE_INVALID", "AGENT_ID_INVALID"],
    handle: async (request) => {
      const { label = null, ...wire } = request.body;
      const rights = rightsOf(request, wire);
      await audit(request, "token.create", rights, {
        label,
        scopes: rights.scopes,
        expiresAtMs: rights.expiresAtMs,
        mode: rights.mode,
        ...(rights.requestsPerMinute === undefined ? {} : { requestsPerMinute: rights.requestsPerMinute }),
      });
      const { info, text } = await request.context.tokens.create(rights, label);
      return json(201, tokenJson(info, text));
    },
  }),
  route({
    id: "revokeToken",
    method: "DELETE",
    path: "/admin/tokens/{id}",
    summary: "Revokes a token, on every node within 5 s. Doing it again changes nothing.",
    scope: "admin",
    answers: { 200: { description: "The token.", schema: tokenSchema } },
    errors: [],
    handle: async (request) => {
      const id = request.parameters["id"] ?? "";
      const { tokens } = request.context;
      const found = (await tokens.list()).find((token) => token.id === id && isReached(request, token));
      // The answer is the same for an unknown id and for another tenant's token, so that a tenant cannot probe for
      // tokens.
      if (found === undefined) throw refused("INPUT_INVALID", "There is no token with this id.", {});
      await audit(request, "token.revoke", found, { id });
      return json(200, tokenJson(await tokens.revoke(id)));
    },
  }),
  route({
    id: "listAudit",
    method: "GET",
    path: "/admin/audit",
    summary: "What was asked for: tokens made and revoked, redactions, purges, and refused calls of /admin.",
    scope: "admin",
    query: z.strictObject({
      after: queryInteger(0).exactOptional().describe("only events with a greater seq"),
      limit: queryInteger(1, mostPageRecords).exactOptional().describe("100 without it, at most 500"),
    }),
    answers: { 200: { description: "The events, the oldest first.", schema: listOf(auditSchema) } },
    errors: [],
    handle: async ({ context, view, query }) => {
      const { after = 0, limit = 100 } = query;
      const items: string[] = [];
      for await (const { seq, action, atMs, by, namespace, agentId, requestId, details } of context.audit.read(after)) {
        const isOwn = view.token.namespace === "*" || view.token.namespace === namespace;
        const { agents } = view.token;
        if (!isOwn || (agents !== "*" && (agentId === null || !agents.includes(agentId)))) continue;
        items.push(JSON.stringify({ kind: "audit", seq, action, atMs, by, namespace, agentId, requestId, details }));
        if (items.length === limit) break;
      }
      return list(items);
    },
  }),
  route({
    id: "drain",
    method: "POST",
    path: "/admin/drain",
    summary: "Readiness says `draining` from now on, until the node is stopped; requests are still answered.",
    scope: "admin",
    answers: {
      200: { description: "The node drains.", schema: z.looseObject({ kind: z.literal("drain"), state: z.string() }) },
    },
    errors: [],
    handle: async (request) => {
      const { namespace, agents } = request.view.token;
      if (namespace !== "*" || agents !== "*")
        throw refused("FORBIDDEN", "Only a token of all namespaces and agents may drain a node.", {
          needs: "namespace",
        });
      await audit(request, "drain", null, {});
      request.context.drain();
      return json(200, { kind: "drain", state: "draining" });
    },
  }),
];

function isReached(
  { view }: Pick<ApiRequest, "view">,
  { namespace, agents }: Pick<TokenInfo, "namespace" | "agents">,
): boolean {
  const own = view.token;
  if (own.namespace !== "*" && own.namespace !== namespace) return false;
  if (own.agents === "*") return true;
  return agents !== "*" && agents.every((agent) => own.agents.includes(agent));
}

/**
 * These scopes reach resources that all tenants share: the metrics of every namespace, and the keys and models of the
 * upstreams.
 */
function isOfTheNode(scope: Scope): boolean {
  return scope === "metrics" || scope.startsWith("gateway:");
}

/**
 * @throws {ThroughlineError} FORBIDDEN for more than the requesting token reaches, INPUT_INVALID, NAMESPACE_INVALID,
 *   AGENT_ID_INVALID
 */
function rightsOf(request: Pick<ApiRequest, "view" | "context">, wire: WireNewToken): TokenRights {
  const { token } = request.view;
  const { namespace = token.namespace, agents = token.agents, scopes, expiresAtMs = null, mode = null } = wire;
  const { requestsPerMinute } = wire;
  if (namespace !== "*") assertNamespace(namespace);
  if (reservedNamespaces.has(namespace))
    throw refused("FORBIDDEN", "The namespace belongs to the server.", { needs: "namespace" });
  if (agents !== "*") for (const agent of agents) assertAgentId(agent);
  if (expiresAtMs !== null && expiresAtMs <= request.context.clock.nowMs())
    throw refused("INPUT_INVALID", "expiresAtMs lies in the past.", { path: "expiresAtMs" });
  const reachesAll = token.namespace === "*" && token.agents === "*";
  const granted = scopes.find((scope) => isOfTheNode(scope) && !token.scopes.includes(scope));
  if (granted !== undefined && !reachesAll)
    throw refused("FORBIDDEN", `Only a token of all namespaces and agents, or with "${granted}", may grant it.`, {
      needs: granted,
    });
  if (requestsPerMinute !== undefined && !reachesAll)
    throw refused("FORBIDDEN", "Only a token of all namespaces and agents may set requestsPerMinute.", {
      needs: "namespace",
    });
  if (!isReached(request, { namespace, agents }))
    throw refused("FORBIDDEN", "A token cannot reach more than the one that makes it.", { needs: "namespace" });
  const limit = requestsPerMinute === undefined ? {} : { requestsPerMinute };
  return { namespace, agents, scopes, expiresAtMs, mode, ...limit };
}

async function audit(
  { context, view, id }: Pick<ApiRequest, "context" | "view" | "id">,
  action: "token.create" | "token.revoke" | "drain",
  about: Pick<TokenRights, "namespace" | "agents"> | null,
  details: Readonly<Record<string, unknown>>,
): Promise<void> {
  const agentId =
    about === null || about.agents === "*" || about.agents.length !== 1 ? null : (about.agents[0] ?? null);
  const agents = about === null ? {} : { agents: about.agents };
  const event = { action, by: view.token.id, namespace: about?.namespace ?? null, agentId, requestId: id };
  await context.audit.write({ ...event, details: { ...details, ...agents } });
}
