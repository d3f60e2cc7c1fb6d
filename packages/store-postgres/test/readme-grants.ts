import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The statements that the README gives for a role of least privilege, as they stand there, for another schema and role. */
export function readmeGrants(schema: string, role: string): string {
  const readme = readFileSync(join(import.meta.dirname, "../README.md"), "utf8");
  const blocks = [...readme.matchAll(/^```sql\n([\s\S]*?)^```$/gm)].map(([, sql = ""]) => sql);
  const [grants, ...more] = blocks.filter((sql) => sql.includes("GRANT"));
  if (grants === undefined || more.length > 0) throw new Error("the README has one block of grants");
  return grants.replaceAll(/\bthroughline\b/g, `"${schema}"`).replaceAll(/\bapp\b/g, role);
}
