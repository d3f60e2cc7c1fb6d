import type { PostgresStore } from "@throughline/store-postgres";
import type { ConnectionPool, RunOptions, RunStatement } from "../src/connection-pool.ts";
import { type TenantAgent, tenantOf } from "../src/layout.ts";
import { contextOf } from "../src/store-context.ts";

/** Holds a statement that binds one tenant, and whether the pool was told an agent of this tenant. */
interface TenantStatement {
  readonly text: string;
  readonly isStated: boolean;
}

/** Notes the statements of open stores that bind the tenant of an agent, from now on. */
export function statementsOfTenant(stores: readonly PostgresStore[], agent: TenantAgent): readonly TenantStatement[] {
  const tenant = tenantOf(agent);
  const found: TenantStatement[] = [];
  const note = (text: string, values: readonly unknown[], stated: TenantAgent | undefined): void => {
    // A walk over all sessions names the tenant as its position.
    if (values.includes(tenant) && !text.includes("(t.session_no, t.tenant) >"))
      found.push({ text, isStated: stated !== undefined && tenantOf(stated) === tenant });
  };
  for (const { pool } of stores.map(contextOf)) {
    const own: Pick<ConnectionPool, "run" | "transaction"> = {
      run: pool.run.bind(pool),
      transaction: pool.transaction.bind(pool),
    };
    Object.assign(pool, {
      run(text: string, values: readonly unknown[], asked: RunOptions = {}) {
        note(text, values, asked.agent);
        return own.run(text, values, asked);
      },
      transaction<Result>(work: (run: RunStatement) => Promise<Result>, stated?: TenantAgent) {
        return own.transaction((run) => {
          const noted: RunStatement = (text, values = []) => {
            note(text, values, stated);
            return run(text, values);
          };
          return work(noted);
        }, stated);
      },
    });
  }
  return found;
}
