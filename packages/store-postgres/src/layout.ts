import { createHash } from "node:crypto";

/** Names how the tables of a schema are keyed. The choice is fixed when the schema is created. */
export type LayoutName = "plain" | "tenant";

/**
 * States what the layout of a schema adds to a statement. In the plain layout a session number or an address finds the
 * rows, and every part here is empty. In the tenant layout every row also has the number of its tenant, every key
 * contains it, and every statement about one session names it. A server with several nodes or partitions then asks only
 * one of them.
 */
export interface Layout {
  readonly name: LayoutName;
  /** Returns a condition, with its AND, that the rows of `row` belong to the tenant of the expression. */
  and(row: string, tenant: string): string;
  /** Returns a column or value with its comma, for the beginning of a list. */
  first(item: string): string;
  /** Returns a column or value with its comma, for the end of a list. */
  last(item: string): string;
  /** Returns the value for the parameter of the tenant. The plain layout has none. */
  values(agent: TenantAgent): readonly string[];
}

export interface TenantAgent {
  readonly namespace: string;
  readonly agentId: string;
}

/** Returns the agent of a query that names one. */
export function agentOf({
  namespace = "",
  agentId,
}: {
  readonly namespace?: string | undefined;
  readonly agentId?: string | undefined;
}): TenantAgent | undefined {
  return agentId === undefined ? undefined : { namespace, agentId };
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

/** Returns the value for the parameter of the only tenant, or none for all tenants. */
export function tenantsOf({ values }: Layout, agent: TenantAgent | undefined): readonly string[] {
  return agent === undefined ? [] : values(agent);
}

/** Lists `count` parameters (`$1, $2, …`), and one more for the tenant where the layout has it. */
export function parametersOf({ name }: Layout, count: number): string {
  const all = name === "plain" ? count : count + 1;
  return Array.from({ length: all }, (_, index) => `$${index + 1}`).join(", ");
}

export function layoutNamed(name: LayoutName): Layout {
  return name === "tenant" ? tenantLayout : plainLayout;
}

/** Returns the position before the first session of a walk by number. Several tenants may use the same number. */
export function beforeAll({ name }: Layout): readonly string[] {
  return name === "plain" ? ["0"] : ["0", "-9223372036854775808"];
}

/** Returns the condition and the order that continue the walk behind a position, which is bound from `$from` on. */
export function numbersBehind({ last }: Layout, from: number): string {
  const columns = `t.session_no${last("t.tenant")}`;
  return `(${columns}) > ($${from}::bigint${last(`$${from + 1}::bigint`)}) ORDER BY ${columns}`;
}

/**
 * Returns the tenant of an agent as a 64-bit whole number. It is the first eight bytes of SHA-256 over the namespace,
 * NUL and the agent id in lower case. The result must never change, because no session would be found again. Agent ids
 * that differ only in case share a tenant, so that one node can detect the collision. Two agents with the same number
 * share only a node, because no key relies on the number.
 */
export function tenantOf({ namespace, agentId }: TenantAgent): string {
  const digest = createHash("sha256").update(`${namespace}\0${agentId.toLowerCase()}`).digest();
  return digest.readBigInt64BE(0).toString();
}
