import { quoted, WorkspaceToolRefusal } from "./tool-refusal.ts";

/** @throws {WorkspaceToolRefusal} when the number is below 1 or too large to be exact */
export function wholeNumber(name: string, value: number | undefined, otherwise: number): number {
  if (value === undefined) return otherwise;
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new WorkspaceToolRefusal("arguments", `${quoted(name)} has to be a whole number from 1 on.`);
}
