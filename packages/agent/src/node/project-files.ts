import { constants, type Stats } from "node:fs";
import { lstat, open, realpath, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";

/** Holds instructions for agents that a project keeps beside its code. */
export interface ProjectFile {
  readonly path: string;
  readonly text: string;
  /** Identifies the state of the file, to notice a change. */
  readonly version: string;
}

/** The first one of a folder counts. */
const names = ["AGENTS.md", "CLAUDE.md"];
const mostFileBytes = 32_768;
const mostBytes = 65_536;
const cutNote = "\n[The rest of this file is left out.]";

/**
 * Reads the instructions of a folder and of those above it up to the root of its repository, the outermost first. Without
 * a repository only the folder counts. A link that leads out of the repository is not followed.
 */
export async function readProjectFiles(folder: string): Promise<readonly ProjectFile[]> {
  const folders = await foldersOf(folder);
  const root = folders.at(-1) ?? folder;
  const found: ProjectFile[] = [];
  let left = mostBytes;
  // The instructions nearest to the folder are the last to be left out.
  for (const each of folders) {
    const file = await firstFile(each, root, Math.min(left, mostFileBytes));
    if (file === null || found.some(({ path }) => path === file.path)) continue;
    found.unshift(file);
    left = Math.max(0, left - Buffer.byteLength(file.text));
  }
  return found;
}

/**
 * Returns the times and sizes of all files that `readProjectFiles` may read, as one text. It opens no file. While the text
 * stays the same, the instructions do.
 */
export async function projectFileTimes(folder: string): Promise<string> {
  const paths = (await foldersOf(folder)).flatMap((each) => names.map((name) => join(each, name)));
  const lines = await Promise.all(
    paths.map(async (path) => {
      const found = await stat(path).catch(() => null);
      return found === null ? path : `${path} ${versionOf(found)}`;
    }),
  );
  return lines.join("\n");
}

function versionOf({ ino, size, mtimeMs }: Stats): string {
  return [ino, size, mtimeMs].join(" ");
}

/** Returns the part of the system prompt that holds the instructions; null without any. */
export function projectPrompt(files: readonly ProjectFile[]): string | null {
  if (files.length === 0) return null;
  return files.map(({ path, text }) => `# Instructions from ${path}\n\n${text}`).join("\n\n");
}

/** Lists the folder and those above it, up to the root of the repository. */
async function foldersOf(folder: string): Promise<readonly string[]> {
  const folders: string[] = [];
  for (let at = folder; ; at = dirname(at)) {
    folders.push(at);
    if ((await lstat(join(at, ".git")).catch(() => null)) !== null) return folders;
    if (at === dirname(at)) return [folder];
  }
}

async function firstFile(folder: string, root: string, most: number): Promise<ProjectFile | null> {
  for (const name of names) {
    const file = await readInside(join(folder, name), root, most).catch(() => null);
    if (file !== null) return file;
  }
  return null;
}

async function readInside(path: string, root: string, most: number): Promise<ProjectFile | null> {
  const real = await realpath(path);
  const below = relative(root, real);
  if (below === ".." || below.startsWith(`..${sep}`) || most === 0) return null;
  // A pipe would block, and the file may have become a link since.
  const handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) return null;
    const { size } = stats;
    const bytes = Buffer.alloc(Math.min(size, most));
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0);
    const text = new TextDecoder().decode(bytes.subarray(0, bytesRead)).replaceAll("\0", "");
    const isCut = size > bytesRead;
    // The cut may have parted a character.
    const shown = isCut ? `${text.replace(/\uFFFD$/, "")}${cutNote}` : text.trimEnd();
    return { path: real, text: shown, version: versionOf(stats) };
  } finally {
    await handle.close();
  }
}
