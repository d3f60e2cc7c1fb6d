import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const root = process.env["THROUGHLINE_CORPUS"];
/** Folders of the corpus that have another name than the format. */
const folders: Readonly<Record<string, string>> = { gemini: "gemini-cli" };

/** The folder of another program's example files; null where the corpus is not there. */
export function corpusFolder(name: string): string | null {
  const folder = root === undefined ? null : join(root, "foreign", folders[name] ?? name);
  return folder !== null && existsSync(folder) ? folder : null;
}

/** Example files of a program, by name; empty without the corpus. */
export function corpusFiles(name: string, ending: string): readonly string[] {
  const folder = corpusFolder(name);
  if (folder === null) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(ending))
    .toSorted()
    .map((file) => join(folder, file));
}
