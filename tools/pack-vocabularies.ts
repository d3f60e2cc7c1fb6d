import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { gzipSync } from "node:zlib";
import { repositoryRoot } from "./find-files.ts";

/** A vocabulary as the development dependency keeps it: its tokens by rank, as text or as bytes. */
interface SourceVocabulary {
  readonly decoder: readonly TokenBytes[] | Readonly<Record<string, TokenBytes>>;
}
type TokenBytes = string | Uint8Array | readonly number[] | Readonly<Record<string, number>>;

const folder = join(repositoryRoot, "packages/tokens/src/vocabulary");
const require = createRequire(join(repositoryRoot, "packages/tokens/package.json"));

/** The files to write, and the entry of the dependency each is made from. */
export const vocabularyFiles: Readonly<Record<string, string>> = {
  "claude.ts": "ai-tokenizer/encoding/claude",
  "o200k-base.ts": "ai-tokenizer/encoding/o200k_base",
  "cl100k-base.ts": "ai-tokenizer/encoding/cl100k_base",
};

function bytesOf(token: TokenBytes): Buffer {
  if (typeof token === "string") return Buffer.from(token);
  return Buffer.from(token instanceof Uint8Array || Array.isArray(token) ? token : Object.values(token));
}

/** The bytes of every token in order of rank, each behind its length, compressed. */
export function packVocabulary({ decoder }: SourceVocabulary): Buffer {
  const tokens = Object.values(decoder).map(bytesOf);
  const parts = tokens.flatMap((token) => [
    token.length < 255 ? Buffer.from([token.length]) : Buffer.from([255, token.length >> 8, token.length & 255]),
    token,
  ]);
  const packed = gzipSync(Buffer.concat(parts), { level: 9 });
  // The ninth byte of the header names the operating system; the file must not depend on it.
  packed[9] = 255;
  return packed;
}

/** The module that holds a packed vocabulary. */
export function vocabularyModule(entry: string): string {
  const packed = packVocabulary(require(entry) as SourceVocabulary);
  const license = readFileSync(join(repositoryRoot, "packages/tokens/node_modules/ai-tokenizer/LICENSE"), "utf8");
  return [
    `// Written by tools/pack-vocabularies.ts from ${entry}.`,
    // A comment that bundlers keep.
    `/*!\n${license.trim()}\n*/`,
    "/** The tokens by rank, each behind its length, as gzip in base64. */",
    `export const packedVocabulary: string =\n  "${packed.toString("base64")}";`,
    "",
  ].join("\n");
}

if (import.meta.main) {
  mkdirSync(folder, { recursive: true });
  for (const [file, entry] of Object.entries(vocabularyFiles)) {
    const text = vocabularyModule(entry);
    writeFileSync(join(folder, file), text);
    process.stdout.write(`${file} ${text.length} characters\n`);
  }
}
