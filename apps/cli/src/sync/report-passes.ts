import { hasErrorCode, type SessionStore } from "@throughline/core";
import type { SourceSync } from "@throughline/transfer/internal";
import type { CommandContext } from "../command.ts";
import { reportImport } from "../import-report.ts";

/** Imports and prints what is there and what is added, until an interrupt, which is the usual end. */
export async function reportPasses(
  context: CommandContext,
  store: SessionStore,
  sync: SourceSync,
  { kind, watched }: { readonly kind: "import" | "sync"; readonly watched: string },
): Promise<void> {
  const { output, signal } = context;
  const reported = new Set<string>();
  let isFirst = true;
  try {
    for await (const pass of sync.passes(signal)) {
      await reportImport(context, store, pass, {
        kind,
        shown: isFirst ? "all" : "changed",
        isDryRun: false,
        reported,
        ...(isFirst ? { unopened: () => sync.unchanged } : {}),
      });
      if (isFirst && !output.isJson) output.note(`Watching ${watched}; Ctrl-C ends it.`);
      isFirst = false;
    }
  } catch (error) {
    if (!signal.aborted || !hasErrorCode(error, "ABORTED")) throw error;
  }
}
