import { hasErrorCode, ThroughlineError } from "@throughline/core";
import { checkpointJson, plannedCheckpointJson, type SessionNames } from "@throughline/http-api/internal/json";
import { noCheckpointText, printCheckpoint } from "../agent/checkpoint-report.ts";
import { inSession } from "../agent/in-session.ts";
import type { AgentSession } from "@throughline/session/whole-turn";
import { causeText } from "@throughline/core/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";

/** Without new messages the newest checkpoint is printed again, because a new one would say the same. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { output, signal } = context;
  const isDryRun = input.options["dryRun"] === true;
  return inSession(context, input, { isDryRun }, async ({ session, stop }) => {
    if (isDryRun) return plan(context, session);
    output.progress(`making a checkpoint of ${session.key}`);
    // A checkpoint takes no signal, so closing the session ends it.
    const onAbort = (): void => void stop();
    signal.addEventListener("abort", onAbort, { once: true });
    const result = await session.checkpoint().finally(() => signal.removeEventListener("abort", onAbort));
    output.clearProgress();
    if (result.kind === "failed") throw failure(result.cause);
    const { checkpoints } = await session.checkpoints({ signal });
    const made = result.kind === "written" ? checkpoints.find(({ id }) => id === result.recordId) : checkpoints.at(-1);
    if (result.kind === "nothing" && (made === undefined || result.reason !== "nothing-new")) {
      throw new ThroughlineError("INPUT_INVALID", `No checkpoint was made. ${noCheckpointText(result.reason)}`, {
        outcome: "not-applied",
        details: { reason: result.reason },
        remedy: "Say something in the session first, or try again later.",
      });
    }
    if (result.kind === "nothing") output.note("There are no new messages since this checkpoint; no model was called.");
    if (made === undefined) throw new ThroughlineError("INTERNAL", "The checkpoint is not among the session's.");
    if (output.isJson) await output.object(checkpointJson(namesOf(session), made));
    else await printCheckpoint(output, made);
    return 0;
  });
}

async function plan({ output, signal }: CommandContext, session: AgentSession): Promise<number> {
  const { status } = await session.checkpoints({ signal });
  const { gauge } = await session.messages();
  if (output.isJson) {
    await output.object(plannedCheckpointJson(namesOf(session), session.head.lastSeq, gauge.tokens));
    return 0;
  }
  const turns =
    status.lastId === null ? "from its beginning" : `${counted(status.userMessagesSince, "turn")} after the last one`;
  await output.line(
    `Would write a checkpoint of ${session.key}, ${turns}, at ~${gauge.tokens.toLocaleString("en")} tokens. Nothing was changed.`,
  );
  return 0;
}

function namesOf({ key, sessionId }: AgentSession): SessionNames {
  return { key, sessionId };
}

function failure(cause: unknown): unknown {
  if (hasErrorCode(cause, "ABORTED")) return cause;
  return new ThroughlineError("SUMMARY_FAILED", `No checkpoint was made: ${causeText(cause)}`, {
    cause,
    outcome: "not-applied",
  });
}
