import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { apiDocument, referencePage } from "../packages/http-api/src/internal.ts";
import { repositoryRoot } from "./find-files.ts";

/** What is made from the schemas of the server, by its path from the root. */
export function madeFiles(): ReadonlyMap<string, string> {
  const document = apiDocument();
  return new Map([
    ["docs/openapi.json", `${JSON.stringify(document, null, 2)}\n`],
    ["docs/http.md", referencePage(document)],
  ]);
}

/** JSON may be laid out otherwise: the formatter does that. */
export function isSame(path: string, text: string, made: string): boolean {
  if (!path.endsWith(".json")) return text === made;
  return JSON.stringify(JSON.parse(text)) === JSON.stringify(JSON.parse(made));
}

if (import.meta.main) {
  const isWrite = process.argv.includes("--write");
  const different = [...madeFiles()].filter(([path, text]) => {
    const full = join(repositoryRoot, path);
    if (isWrite) writeFileSync(full, text);
    return !isSame(path, readFileSync(full, "utf8"), text);
  });
  for (const [path] of different)
    process.stdout.write(
      `${path} differs from the schemas; run: node --conditions=@throughline/source tools/check-openapi.ts --write\n`,
    );
  process.stdout.write(`openapi: ${different.length === 0 ? "as the schemas have it" : "out of date"}\n`);
  process.exitCode = different.length === 0 ? 0 : 1;
}
