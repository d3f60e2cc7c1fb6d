import { createHash } from "node:crypto";

/** How the tables of a schema are keyed; chosen when the schema is made. */
export type LayoutName = "plain" | "tenant";

/**
 * What the layout of a schema adds to a statement. In the plain layout a session's number, or its address, says where its
 * rows are, and all of this is empty. In the tenant layout every row also has the number of its tenant, every key contains
 * it, and every statement about one session names it. A server that keeps the tenants on several nodes, or in several
 * partitions, then asks one of them.
 */
export interface Layout {
  readonly name: LayoutName;
  /** A further condition on the rows of `row`, with its AND: that their tenant is the one that the expression gives. */
  and(row: string, tenant: string): string;
  /** A column or a value, with its comma, at the beginning of a list. */
  first(item: string): string;
  /** The same, at the end of a list. */
  last(item: string): string;
  /** What is bound to the parameter of the tenant; nothing in the plain layout. */
  values(agent: TenantAgent): readonly string[];
}

/** Whose sessions a tenant has. */
export interface TenantAgent {
  readonly namespace: string;
  readonly agentId: string;
}

export const plainLayout: Layout = {
  name: "plain",
  and: () => "",
  first: () => "",
  last: () => "",
  values: () => [],
};

export const tenantLayout: Layout = {
  name: "tenant",
  and: (row, tenant) => ` AND ${row === "" ? "" : `${row}.`}tenant = ${tenant}`,
  first: (item) => `${item}, `,
  last: (item) => `, ${item}`,
  values: (agent) => [tenantOf(agent)],
};

/** The parameters of a function whose first one is the tenant, where the layout has one: `$1, $2, …`; `count` without it. */
export function parametersOf({ name }: Layout, count: number): string {
  const all = name === "plain" ? count : count + 1;
  return Array.from({ length: all }, (_, index) => `$${index + 1}`).join(", ");
}

export function layoutNamed(name: LayoutName): Layout {
  return name === "tenant" ? tenantLayout : plainLayout;
}

/** Where a walk over all sessions by their numbers begins. Of one number there may be a session in several tenants. */
export function beforeAll({ name }: Layout): readonly string[] {
  return name === "plain" ? ["0"] : ["0", "-9223372036854775808"];
}

/** The condition on `t` that it lies behind a place of that walk, which is bound from `$from` on, and the walk's order. */
export function numbersBehind({ last }: Layout, from: number): string {
  const columns = `t.session_no${last("t.tenant")}`;
  return `(${columns}) > ($${from}::bigint${last(`$${from + 1}::bigint`)}) ORDER BY ${columns}`;
}

/**
 * The tenant of an agent's sessions, as a whole number of 64 bits: the first eight bytes of SHA-256 over the namespace, NUL
 * and the agent id in small letters. It must never change, or no session is found again. Agent ids that differ in case
 * alone are of one tenant, so that one node can tell that they are one id. Two agents with one number share a place and
 * nothing else: no key relies on it.
 */
export function tenantOf({ namespace, agentId }: TenantAgent): string {
  const digest = createHash("sha256").update(`${namespace}\0${agentId.toLowerCase()}`).digest();
  return digest.readBigInt64BE(0).toString();
}
