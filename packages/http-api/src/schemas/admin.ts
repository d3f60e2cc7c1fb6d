import { z } from "zod";
import { type GatewayMode, gatewayModes } from "@throughline/gateway/internal";
import { isScope, scopes, type Scope } from "../security/scopes.ts";
import { atMs, openObject, seq } from "./values.ts";

const agents: z.ZodType<readonly string[] | "*"> = z
  .union([z.literal("*"), z.array(z.string()).min(1).max(1000)])
  .describe("ids of agents, or `*` for all");

export interface WireNewToken {
  readonly label?: string | null;
  readonly namespace?: string;
  readonly agents?: readonly string[] | "*";
  readonly scopes: readonly Scope[];
  readonly expiresAtMs?: number | null;
  readonly mode?: GatewayMode | null;
  readonly requestsPerMinute?: number | null;
}

export const newTokenSchema: z.ZodType<WireNewToken> = z
  .strictObject({
    label: z.string().max(200).nullable().exactOptional().describe("what it is for, for people"),
    namespace: z.string().exactOptional().describe("the tenant, or `*`; that of the asking token without it"),
    agents: agents.exactOptional(),
    scopes: z
      .array(z.union([z.enum(scopes), z.custom<Scope>((value) => typeof value === "string" && isScope(value))]))
      .min(1)
      .max(100),
    expiresAtMs: atMs.nullable().exactOptional().describe("null, or left out: it never expires"),
    mode: z
      .enum(gatewayModes)
      .nullable()
      .exactOptional()
      .describe("what the gateway does with its calls; null, or left out: what the upstream says"),
    requestsPerMinute: z
      .int()
      .min(1)
      .max(1_000_000)
      .nullable()
      .exactOptional()
      .describe(
        "its own limit of requests; null: none; the limit of the server without it. Only a token of all namespaces and agents may set it",
      ),
  })
  .meta({ id: "newToken" });

export const tokenSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("token"),
    id: z.string(),
    label: z.string().nullable(),
    namespace: z.string(),
    agents,
    scopes: z.array(z.string()),
    mode: z
      .enum(gatewayModes)
      .nullable()
      .describe("what the gateway does with its calls; null: what the upstream says"),
    requestsPerMinute: z
      .int()
      .nullable()
      .exactOptional()
      .describe("its own limit of requests; null: none; left out: the limit of the server holds"),
    createdAtMs: atMs,
    expiresAtMs: atMs.nullable(),
    revokedAtMs: atMs.nullable(),
    secret: z.string().nullable().describe("`tl_ID_SECRET` in the answer that made it, null everywhere else"),
  })
  .meta({ id: "token" });

export const auditSchema: z.ZodObject = z
  .looseObject({
    kind: z.literal("audit"),
    seq,
    action: z.enum(["token.create", "token.revoke", "redact", "purge", "drain", "refused", "audit.remove"]),
    atMs,
    by: z.string().describe("the id of the token that asked, or `cli`"),
    namespace: z.string().nullable(),
    agentId: z.string().nullable(),
    requestId: z.string().nullable().describe("as the log names it"),
    details: openObject,
  })
  .meta({ id: "audit" });
