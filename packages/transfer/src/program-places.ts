import { joinPath } from "@throughline/openclaw-format/internal";

export interface ProgramPlace {
  /** Names environment variables for the folder; the first one that is set counts. */
  readonly variables: readonly string[];
  /** Holds the path below the user's home. */
  readonly home: string;
}

export interface UserPlaces {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly userHome: string;
}

export function rootOf({ variables, home }: ProgramPlace, { environment, userHome }: UserPlaces): string {
  const named = variables.map((name) => environment[name]).find((value) => value !== undefined && value !== "");
  if (named === undefined) return joinPath(userHome, home);
  return named === "~" || named.startsWith("~/") ? joinPath(userHome, named.slice(1)) : named;
}
