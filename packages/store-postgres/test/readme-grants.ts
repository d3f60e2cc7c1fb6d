import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { LayoutName } from "../src/layout.ts";

/** The statements that the README gives for a role of least privilege, as they stand there, for another schema and role. */
export function readmeGrants(schema: string, role: string, what: "the store" | "a tenant" = "the store"): string {
  const readme = readFileSync(join(import.meta.dirname, "../README.md"), "utf8");
  const blocks = [...readme.matchAll(/^```sql\n([\s\S]*?)^```$/gm)].map(([, sql = ""]) => sql);
  const texts = blocks.filter((sql) => sql.includes("GRANT") && sql.includes("role_of_1") === (what === "a tenant"));
  const [grants, ...more] = texts;
  if (grants === undefined || more.length > 0) throw new Error(`the README has one block of grants for ${what}`);
  return grants.replaceAll(/\bthroughline\b/g, `"${schema}"`).replaceAll(/\bapp\b/g, role);
}

/** Gives the role the agent `main`, and makes that of the agent `other`, as the README says it for the layout. */
export function giveMain(layout: LayoutName, schema: string, role: string): string {
  if (layout === "plain")
    return `INSERT INTO "${schema}".agent_roles (role_name, agent_id) VALUES ('${role}', 'main'), ('somebody', 'other')`;
  const grant = readmeGrants(schema, role, "a tenant");
  const other = grant.replaceAll("'main'", "'other'").replace(/EXECUTE format\('GRANT[^;]*;/, "");
  // Roles are the server's, and several tests make the same ones.
  return `BEGIN; SELECT pg_advisory_xact_lock(7469); ${grant} ${other} COMMIT`;
}
