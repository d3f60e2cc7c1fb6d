import type { SessionState } from "@throughline/core";
import type { CommandContext } from "./command.ts";
import { sessionRow } from "@throughline/core/internal";

export async function showSession({ output }: CommandContext, state: SessionState, what: string): Promise<void> {
  if (output.isJson) {
    await output.object({ ...sessionRow(state) });
    return;
  }
  const { label } = sessionRow(state);
  await output.line(
    { text: state.ref.key, style: "bold" },
    `\t${state.sessionId}`,
    label === null ? "" : `\t${label}`,
    { text: `\t${what}`, style: "dim" },
  );
}
