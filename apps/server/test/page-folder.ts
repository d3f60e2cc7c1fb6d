import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";

const html = "text/html; charset=utf-8";
const script = "text/javascript; charset=utf-8";

/** A page as its build leaves it: small, but with every kind of file. */
export const pageFiles: Readonly<Record<string, { readonly type: string; readonly text: string }>> = {
  "index.html": {
    type: html,
    text: '<!doctype html><title>Throughline</title><script type="module" src="/inspect/assets/index-Ab3_dE9f.js"></script>\n',
  },
  "assets/index-Ab3_dE9f.js": { type: script, text: `document.title = "loaded";\n${"// text\n".repeat(500)}` },
  "favicon.svg": { type: "image/svg+xml", text: '<svg xmlns="http://www.w3.org/2000/svg"/>\n' },
};

/** Writes the files of a page with their list, and gives the folder. */
export function writePage(folder: string, files: typeof pageFiles = pageFiles): string {
  const list = Object.entries(files).map(([name, { type, text }]) => {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    writeFileSync(`${path}.gz`, gzipSync(text));
    return { name, type, bytes: Buffer.byteLength(text), sha256: createHash("sha256").update(text).digest("hex") };
  });
  writeFileSync(join(folder, "files.json"), JSON.stringify(list));
  return folder;
}
