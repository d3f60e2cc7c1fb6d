import { isAbsolute, join, resolve } from "node:path";
import { type LinearExpression, linearExpression } from "@throughline/core/internal";
import { nearestRealPath } from "./node/source-files.ts";

/** Selects folders. */
export interface FolderPatterns {
  readonly isEmpty: boolean;
  /** True if a pattern names the folder or a folder above it, by its path or by the path behind its links. */
  match(folder: string): Promise<boolean>;
}

export const noFolders: FolderPatterns = { isEmpty: true, match: () => Promise.resolve(false) };

/**
 * Reads patterns such as `~/private`, `/srv/team-*` and `scratch`. `*` stands for any part of one name, `**` for any
 * number of names, and `~/` for the user's home. A pattern without a folder at its start matches at any depth. Each
 * pattern covers the folders below it, too.
 */
export function folderPatterns(
  patterns: readonly string[],
  { userHome }: { readonly userHome: string },
): FolderPatterns {
  if (patterns.length === 0) return noFolders;
  let expressions: Promise<readonly LinearExpression[]> | null = null;
  const known = new Map<string, boolean>();
  return {
    isEmpty: false,
    async match(folder) {
      const found = known.get(folder);
      if (found !== undefined) return found;
      expressions ??= expressionsOf(patterns, userHome);
      const texts = [slashed(resolve(folder)), slashed(await nearestRealPath(resolve(folder)))];
      const isMatch = (await expressions).some((expression) => texts.some((text) => expression.test(text)));
      // Thousands of sessions share few folders.
      if (known.size >= mostKnown) known.clear();
      known.set(folder, isMatch);
      return isMatch;
    },
  };
}

const mostKnown = 10_000;

async function expressionsOf(patterns: readonly string[], userHome: string): Promise<readonly LinearExpression[]> {
  const texts = await Promise.all(patterns.map((pattern) => formsOf(pattern, userHome)));
  return [...new Set(texts.flat())].map((text) => linearExpression(text));
}

/** A pattern may lead through a link, and a program states the folder behind it. */
async function formsOf(pattern: string, userHome: string): Promise<readonly string[]> {
  const inHome = pattern === "~" || /^~[/\\]/.test(pattern) ? join(userHome, pattern.slice(1)) : pattern;
  if (!isAbsolute(inHome)) return [`(?:^|/)${partsOf(inHome)}(?:/|$)`];
  const names = slashed(inHome).split("/");
  const firstOpen = names.findIndex((name) => name.includes("*"));
  const plain = names.slice(0, firstOpen === -1 ? names.length : firstOpen).join("/");
  const rest = firstOpen === -1 ? [] : names.slice(firstOpen);
  const real = slashed(await nearestRealPath(plain === "" ? "/" : plain));
  return [plain, real].map((start) => `^${partsOf([start.replace(/\/$/, ""), ...rest].join("/"))}(?:/|$)`);
}

function partsOf(pattern: string): string {
  const names = slashed(pattern)
    .split("/")
    .filter((name, at) => name !== "" || at === 0);
  return names
    .map((name) => (name === "**" ? "(?:[^/]*(?:/[^/]*)*)" : name.split("*").map(literal).join("[^/]*")))
    .join("/");
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

function slashed(path: string): string {
  return path.replaceAll("\\", "/");
}
