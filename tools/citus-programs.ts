import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

/** Has the programs of Debian's PostgreSQL 15, beside which Citus's own packages install the extension. */
const debianPrograms = "/usr/lib/postgresql/15/bin";

/** Returns the folder of the server's programs that the cluster suite starts: the one named, or Debian's. */
export function citusPrograms(named: string | undefined = process.env["THROUGHLINE_CITUS_PROGRAMS"]): string {
  return named ?? debianPrograms;
}

/** Returns why no cluster can be started, or null. PostgreSQL finds its extensions relative to its own programs. */
export function missingForCitus(programs: string = citusPrograms()): string | null {
  if (!existsSync(join(programs, "initdb")))
    return `no PostgreSQL in ${programs}: install postgresql-15 with Citus, or name the folder of its programs in THROUGHLINE_CITUS_PROGRAMS`;
  if (existsSync(join(programs, "../lib/citus.so"))) return null;
  return `no Citus beside the PostgreSQL of ${programs}: install it, or name the folder of another server's programs in THROUGHLINE_CITUS_PROGRAMS`;
}
