import { quoted, WorkspaceToolRefusal } from "./tool-refusal.ts";

/** Arguments as the model wrote them. */
export type ToolArguments = Readonly<Record<string, unknown>>;

/** @throws {WorkspaceToolRefusal} when it is missing or no text */
export function textArgument(args: ToolArguments, name: string): string {
  const value = args[name];
  if (typeof value === "string") return value;
  throw new WorkspaceToolRefusal(
    "arguments",
    `${quoted(name)} has to be text${value === undefined ? ", and is missing" : ""}.`,
  );
}

/** @throws {WorkspaceToolRefusal} when it is there and no text */
export function optionalText(args: ToolArguments, name: string, otherwise: string): string {
  return args[name] === undefined || args[name] === null ? otherwise : textArgument(args, name);
}

/** A whole number; also one that the model wrote as text. @throws {WorkspaceToolRefusal} */
export function optionalCount(args: ToolArguments, name: string, otherwise: number): number {
  const value = args[name];
  if (value === undefined || value === null) return otherwise;
  const number = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof number === "number" && Number.isSafeInteger(number) && number >= 1) return number;
  throw new WorkspaceToolRefusal("arguments", `${quoted(name)} has to be a whole number from 1 on.`);
}

/** @throws {WorkspaceToolRefusal} when it is there and neither true nor false */
export function optionalFlag(args: ToolArguments, name: string): boolean {
  const value = args[name];
  if (value === undefined || value === null) return false;
  if (typeof value === "boolean") return value;
  throw new WorkspaceToolRefusal("arguments", `${quoted(name)} has to be true or false.`);
}
