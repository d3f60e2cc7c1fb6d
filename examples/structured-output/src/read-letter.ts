import { hasErrorCode } from "@throughline/core";
import type { Session } from "@throughline/session";
import { z } from "zod";

const letterSchema = z.object({
  kind: z.enum(["invoice", "reminder", "other"]),
  sender: z.string().describe("The company or person that wrote the letter."),
  amount: z.number().nonnegative().nullable().describe("What is to be paid, in euros; null if nothing is."),
  dueDate: z.iso.date().nullable().describe("When it is to be paid; null if the letter does not say."),
});

/** Has the fields of the schema: the compiler compares both below. */
export interface Letter {
  readonly kind: "invoice" | "reminder" | "other";
  readonly sender: string;
  readonly amount: number | null;
  readonly dueDate: string | null;
}

/** Reads one letter. Null means that the model did not get it right, also after a correction; the log has what it said. */
export async function readLetter(session: Session, text: string): Promise<Letter | null> {
  try {
    const turn = await session.runTurn(`What does this letter ask for?\n\n${text}`, { output: letterSchema });
    return turn.outcome === "done" ? turn.output : null;
  } catch (error) {
    if (hasErrorCode(error, "OUTPUT_INVALID")) return null;
    throw error;
  }
}
