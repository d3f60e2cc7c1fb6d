import { parseStoreUrl } from "@throughline/config";
import { needsAttention } from "@throughline/transfer/internal";
import { verifyStore } from "../doctor/verify-store.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import { createFindingReport } from "../finding-report.ts";

const findingsExitCode = 3;

/** Exits with 3 when a finding exists. Changes nothing. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const isFull = input.options["full"] === true;
  const { host, output, scope, signal, storeUrl } = context;
  const report = createFindingReport(output, isFull ? "verify --full" : "verify");
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  await verifyStore(
    {
      open: (onFinding) => context.openStore("read", onFinding),
      folder: address.scheme === "jsonl" ? address.root : null,
      isFull,
      query: { namespace: scope.namespace, ...(scope.isAgentGiven ? { agentId: scope.agentId } : {}) },
      signal,
    },
    {
      onFindings: report.add,
      onNoCheck: (name) =>
        output.note(`The ${name} store has no check of its own: every session is read from end to end.`),
    },
  );
  await report.close("store");
  return needsAttention(report.findings) ? findingsExitCode : 0;
}
