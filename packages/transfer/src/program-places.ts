import { joinPath } from "@throughline/openclaw-format/internal";

/** Where a program keeps its files. */
export interface ProgramPlace {
  /** Environment variables that name the folder; the first one that is set counts. */
  readonly variables: readonly string[];
  /** Below the user's home. */
  readonly home: string;
}

export interface UserPlaces {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly userHome: string;
}

/** The folder of a program, as its environment names it, else in the user's home. */
export function rootOf({ variables, home }: ProgramPlace, { environment, userHome }: UserPlaces): string {
  const named = variables.map((name) => environment[name]).find((value) => value !== undefined && value !== "");
  if (named === undefined) return joinPath(userHome, home);
  return named === "~" || named.startsWith("~/") ? joinPath(userHome, named.slice(1)) : named;
}
