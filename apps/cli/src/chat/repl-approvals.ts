import { conversationFolder, readAllowedEdits, withdrawAllowedEdits } from "@throughline/agent/internal";
import { usageError } from "../error-report.ts";
import { shownFolder } from "../session-names.ts";
import { timeText } from "../time-text.ts";
import type { ReplContext } from "./repl-context.ts";

/** Shows the standing answer to changes of files, or takes it back. */
export async function showApprovals({ context, conversation }: ReplContext, argument: string): Promise<void> {
  const { output, host } = context;
  const { store, ref } = conversation;
  if (argument !== "" && argument !== "off") throw usageError("/approvals takes no word but off.");
  const state = await store.load(ref);
  const folder = conversationFolder(context);
  const allowed = state === null ? null : readAllowedEdits(state.entry, folder);
  const shown = shownFolder(folder, host.userHome);
  if (allowed === null) return output.line(`No change of a file in ${shown} is allowed in advance.`);
  if (argument === "off") {
    await withdrawAllowedEdits(store, ref);
    return output.line(`Each change of a file in ${shown} is asked again.`);
  }
  return output.line(
    `Changes of files in ${shown} are allowed in this session since ${timeText(allowed.sinceMs)}. /approvals off takes it back.`,
  );
}
