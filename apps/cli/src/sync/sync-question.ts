import {
  isStoreHere,
  type ProgramSurvey,
  readSyncConsent,
  surveyPrograms,
  writeSyncConsent,
} from "@throughline/agent/internal";
import { maskSecrets } from "@throughline/config/internal";
import { hasErrorCode } from "@throughline/core";
import { causeText } from "@throughline/core/internal";
import type { CommandContext } from "../command.ts";
import { counted, sizeText } from "../counted.ts";

/**
 * Asks once for the stores of this machine, and once for each other store, whether the sessions of other programs may be imported, and remembers the answer. Returns
 * whether they may.
 */
export async function askForSync(context: CommandContext, surveys: readonly ProgramSurvey[]): Promise<boolean> {
  const where = isStoreHere(context)
    ? "nothing leaves this machine"
    : `their texts are copied to ${maskSecrets(context.storeUrl)}`;
  const question = `${surveyText(surveys)}. Import them? Files stay unchanged; ${where}.`;
  const isAgreed = await isConfirmed(context, question);
  rememberAnswer(context, isAgreed ? "yes" : "no");
  return isAgreed;
}

/** A home that cannot be written costs the answer only, so the question comes again. */
export function rememberAnswer(context: CommandContext, answer: "yes" | "no"): void {
  try {
    writeSyncConsent(context, answer);
  } catch (error) {
    context.output.note(`The answer cannot be kept in the home: ${causeText(error)}`);
  }
}

/** Asks, and says what a person who refused can do later. An interrupt is no answer. */
export async function isConfirmed(context: CommandContext, question: string): Promise<boolean> {
  try {
    await context.confirm(question);
    return true;
  } catch (error) {
    if (!hasErrorCode(error, "ABORTED") || context.signal.aborted) throw error;
    context.output.note("Nothing was imported; `throughline sync` does it whenever it is wanted.");
    return false;
  }
}

/** Returns for example `Claude Code 214 sessions, opencode 1 database: 1.2 GB`. */
export function surveyText(surveys: readonly ProgramSurvey[]): string {
  const parts = surveys.map(({ program, files, databases }) => {
    const counts = [
      ...(files > 0 ? [counted(files, "session")] : []),
      ...(databases > 0 ? [counted(databases, "database")] : []),
    ];
    return `${program} ${counts.join(" and ")}`;
  });
  return `${parts.join(", ")}: ${sizeText(surveys.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0))}`;
}

/** Finds what a person who was never asked may decide about; null when there is nothing, or the answer is known. */
export async function undecidedPrograms(
  context: CommandContext,
  formats: ReadonlySet<string> | null,
): Promise<readonly ProgramSurvey[] | null> {
  if (readSyncConsent(context) !== null) return null;
  const surveys = await surveyPrograms(context, formats);
  return surveys.length === 0 ? null : surveys;
}
