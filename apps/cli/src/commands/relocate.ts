import { parseStoreUrl } from "@throughline/config";
import { expandStoreUrl } from "@throughline/config/internal";
import { ThroughlineError, type SessionStore } from "@throughline/core";
import type { PostgresStore } from "@throughline/store-postgres";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { fillIndex } from "../fill-index.ts";
import { openTarget } from "../open-target.ts";

interface RelocateCommandOptions {
  readonly toStore?: string;
  readonly allNamespaces?: boolean;
}

const findingsExitCode = 3;

/** Moves sessions while programs write. Sessions in a turn stay, so a second run moves them. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as RelocateCommandOptions;
  const { host, output, scope, signal } = context;
  if (options.toStore === undefined) throw usageError("relocate needs a target: --to-store URL.");
  const target = expandStoreUrl(options.toStore, host.userHome);
  if (parseStoreUrl(target, host.workingDirectory).scheme !== "postgres") throw noPostgres("--to-store");
  const from = asPostgres(await context.openStore("write"), "--store");
  const isAll = options.allNamespaces === true;
  await context.confirm(
    `Move the sessions of ${isAll ? "every namespace" : `the namespace ${JSON.stringify(scope.namespace)}`}? Programs then find them in the target only.`,
  );
  await using opened = await openTarget(context, target);
  const to = asPostgres(opened, "--to-store");
  const { relocateSessions } = await import("@throughline/store-postgres");
  const counts = { moved: 0, busy: 0, taken: 0 };
  let families = 0;
  for await (const family of relocateSessions(from, to, {
    ...(isAll ? {} : { namespace: scope.namespace }),
    signal,
  })) {
    const { outcome, sessions, records } = family;
    families += 1;
    counts[outcome] += sessions.length;
    if (output.isJson) {
      const moved = sessions.map(({ ref, sessionId }) => ({
        namespace: ref.namespace,
        agentId: ref.agentId,
        key: ref.key,
        archiveId: ref.archiveId ?? null,
        sessionId,
      }));
      await output.object({ kind: "relocate", state: outcome, sessions: moved, records });
    } else {
      const keys = sessions.map(({ ref }) => (ref.archiveId === undefined ? ref.key : `${ref.key} (${ref.archiveId})`));
      await output.line(`${outcome}\t${counted(records, "record")}\t${keys.join(", ")}`);
    }
    await output.flush();
  }
  if (output.isJson) await output.end(families);
  await output.flush();
  if (counts.moved > 0) await fillIndex(context, to);
  if (counts.busy > 0)
    output.note(
      `${counted(counts.busy, "session")} in a turn stayed. Run the same command again to move what is left.`,
    );
  if (counts.taken > 0)
    output.note(
      `${counted(counts.taken, "session")} stayed: the target has one of that key or id. Delete one of the two.`,
    );
  return counts.busy + counts.taken > 0 ? findingsExitCode : 0;
}

/** @throws {ThroughlineError} CAPABILITY_UNSUPPORTED */
function asPostgres(store: SessionStore, flag: string): PostgresStore {
  if (store.capabilities.name !== "postgres") throw noPostgres(flag);
  return store as PostgresStore;
}

function noPostgres(flag: string): ThroughlineError {
  return new ThroughlineError(
    "CAPABILITY_UNSUPPORTED",
    `relocate moves between schemas of PostgreSQL; ${flag} is none.`,
    {
      outcome: "not-applied",
      details: { flag },
      remedy: "Use `throughline copy --all --to-store URL` for other stores.",
    },
  );
}
