import type { SessionStore } from "@throughline/core";
import { type CopyOptions, copySessions } from "@throughline/transfer";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { damageOf } from "../damaged-session.ts";
import { usageError } from "../error-report.ts";
import { fillIndex } from "../fill-index.ts";
import { openTarget } from "../open-target.ts";
import { resolveSession } from "@throughline/core/internal";
import { parseStoreUrl } from "@throughline/config";
import { expandStoreUrl } from "@throughline/config/internal";

interface CopyCommandOptions {
  readonly all?: boolean;
  readonly toStore?: string;
  readonly allAgents?: boolean;
}

const findingsExitCode = 3;

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as CopyCommandOptions;
  const [key] = input.arguments;
  const { host, output, scope, signal } = context;
  if ((key === undefined) === (options.all !== true)) throw usageError("copy takes either a KEY or --all.");
  if (options.toStore === undefined) throw usageError("copy needs a target: --to-store URL.");
  const target = expandStoreUrl(options.toStore, host.userHome);
  const from = await context.openStore("read");
  if (parseStoreUrl(target, host.workingDirectory).scheme === "memory")
    output.note("A copy in memory: is gone when this command ends; it only shows whether a copy can be made.");
  const refs = key === undefined ? null : [(await resolveSession(from, key, scope, { signal })).ref];
  await using to = await openTarget(context, target);
  const agent = options.allAgents === true ? {} : { agentId: scope.agentId };
  const chosen = refs === null ? { namespace: scope.namespace, ...agent } : { refs };
  let count = 0;
  let copied = 0;
  let hasDamage = false;
  let firstRefusal: Error | null = null;
  for await (const { ref, sessionId, state, records, error } of copySessions(from, to, { ...chosen, signal })) {
    count += 1;
    copied += records;
    if (output.isJson)
      await output.object({ kind: "copy", agentId: ref.agentId, key: ref.key, sessionId, state, records });
    else await output.line(`${state}\t${counted(records, "record")}\t${ref.key}`);
    const damage = error === null || key !== undefined ? null : damageOf(error, ref.key);
    if (damage !== null) output.finding(damage);
    else if (error !== null) output.note(`${ref.key}: ${error.message}`);
    hasDamage ||= damage !== null;
    if (damage === null) firstRefusal ??= error;
    await output.flush();
  }
  if (output.isJson) await output.end(count);
  await output.flush();
  if (refs === null && to.maintenance?.addPurges === undefined && (await hasPurges(from, chosen)))
    output.note("The target does not take the marks of purges: an import there brings purged sessions back.");
  if (copied > 0) await fillIndex(context, to);
  if (firstRefusal === null) return hasDamage ? findingsExitCode : 0;
  await output.flush();
  throw firstRefusal;
}

async function hasPurges(store: SessionStore, chosen: CopyOptions): Promise<boolean> {
  const { namespace = "", agentId } = chosen;
  const asked = agentId === undefined ? { namespace } : { namespace, agentId };
  for await (const purges of store.maintenance?.purges?.(asked) ?? []) if (purges.length > 0) return true;
  return false;
}
