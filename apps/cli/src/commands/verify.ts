import { inspectStore, needsAttention } from "@throughline/inspect";
import type { Finding } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { createFindingReport } from "../finding-report.ts";
import { NewFindings } from "../new-findings.ts";
import { strangeStoreFiles } from "../strange-store-files.ts";

const findingsExitCode = 3;

/** Reads the whole store and says what cannot be what was written. Changes nothing; ends with 3 when there is something. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const isFull = input.options["full"] === true;
  const { output, scope, signal } = context;
  const report = createFindingReport(output, isFull ? "verify --full" : "verify");
  const noticed: Finding[] = [];
  const store = await context.openStore("read", (finding) => noticed.push(finding));
  const newFindings = new NewFindings();
  const take = (found: readonly Finding[]): Promise<void> =>
    report.add(newFindings.pick([...noticed.splice(0), ...found]));
  for await (const finding of strangeStoreFiles(context)) {
    newFindings.addStrange(finding);
    await report.add([finding]);
  }
  if (store.maintenance === undefined) {
    output.note(`The ${store.capabilities.name} store has no check of its own: every session is read from end to end.`);
    const query = { namespace: scope.namespace, ...(scope.isAgentGiven ? { agentId: scope.agentId } : {}) };
    for await (const finding of inspectStore(store, { query, signal })) await take([finding]);
  } else {
    for await (const finding of store.maintenance.verify({ full: isFull, signal })) await take([finding]);
  }
  await take([]);
  await report.close("store");
  return needsAttention(report.findings) ? findingsExitCode : 0;
}
