import type { SessionRow } from "@throughline/core/internal";
import { plainName, quotedName } from "./result-text.ts";

export const mostNameCharacters = 80;
const mostFolderCharacters = 200;

interface SessionFacts {
  readonly name: string;
  readonly program?: string;
  readonly folder?: string;
}

/** Returns what names a session for people, cut and without invisible characters. */
export function sessionFacts({ name, program, cwd }: SessionRow): SessionFacts {
  return {
    name: plainName(name, mostNameCharacters),
    ...(program === null ? {} : { program: plainName(program, mostNameCharacters) }),
    ...(cwd === null ? {} : { folder: plainName(cwd, mostFolderCharacters) }),
  };
}

/** Returns for example `, in "/srv/app"`; empty without a folder. */
export function folderText(folder: string | undefined): string {
  return folder === undefined ? "" : `, in ${quotedName(folder, mostFolderCharacters)}`;
}
