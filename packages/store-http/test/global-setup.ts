import { setup as startPostgres } from "../../store-postgres/test/global-setup.ts";
import { isLongRun } from "../../../tools/test-size.ts";

/** PostgreSQL is started for `npm run test:long` alone: in `npm test` the kit runs over memory and SQLite. */
export async function setup(
  ...args: Parameters<typeof startPostgres>
): Promise<Awaited<ReturnType<typeof startPostgres>> | undefined> {
  return isLongRun ? startPostgres(...args) : undefined;
}
