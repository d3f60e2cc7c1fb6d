import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type ForeignFormatName, foreignFormatNames } from "../src/names.ts";

const root = process.env["THROUGHLINE_CORPUS"];
/** Folders of the corpus that have another name than the format. */
const folders: Readonly<Record<string, string>> = { gemini: "gemini-cli" };

/** The folder of another program's example files; null where the corpus is not there. */
function corpusFolder(name: string): string | null {
  const folder = root === undefined ? null : join(root, "foreign", folders[name] ?? name);
  return folder !== null && existsSync(folder) ? folder : null;
}

/** Whether a file is a dump of a database's rows, which no program writes. */
export function isDump(file: string): boolean {
  return /(?:^|\/)(?:memory-saver-rows|toolpath-bubbles)\.json$/.test(file);
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

/** Every folder of the corpus, with the format whose files it holds; null where that is not read. */
export function corpusFolders(): readonly (readonly [folder: string, format: ForeignFormatName | null])[] {
  const foreign = root === undefined ? "" : join(root, "foreign");
  if (!existsSync(foreign)) return [];
  return readdirSync(foreign, { withFileTypes: true }).flatMap((entry) => {
    const format = foreignFormatNames.find((name) => (folders[name] ?? name) === entry.name) ?? null;
    return entry.isDirectory() ? [[join(foreign, entry.name), format] as const] : [];
  });
}
