import { lstatSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** Sessions of another program, as the file system shows them; nothing was read. */
export interface ForeignPlace {
  /** What `import` takes. */
  readonly path: string;
  readonly files: number;
  readonly sizeBytes: number;
  /** Of the newest change, so that what was looked at is not looked at again. */
  readonly newestMs: number;
}

/** Where OpenClaw and GoClaw keep sessions, below the user's directory. */
export const knownPlaces: readonly (readonly string[])[] = [
  [".openclaw", "agents", "main", "sessions"],
  [".openclaw", "sessions.db"],
  [".openclaw", "goclaw", "sessions.db"],
];

/** The places that hold sessions; those that are not there, or cannot be looked into, are none. */
export function foreignPlaces(paths: readonly string[]): readonly ForeignPlace[] {
  return paths.flatMap((path) => {
    try {
      const place = statSync(path).isDirectory() ? folder(path) : file(path);
      return place.files === 0 ? [] : [place];
    } catch {
      // Not there, or somebody else's: nobody asked for it, so there is nothing to say.
      return [];
    }
  });
}

function folder(path: string): ForeignPlace {
  const names = readdirSync(path).filter((name) => /\.jsonl(\.|$)/.test(name));
  let [sizeBytes, newestMs, files] = [0, 0, 0];
  for (const name of names) {
    const { size, mtimeMs } = lstatSync(join(path, name));
    sizeBytes += size;
    newestMs = Math.max(newestMs, mtimeMs);
    if (size > 0) files += 1;
  }
  return { path, files, sizeBytes, newestMs };
}

function file(path: string): ForeignPlace {
  const { size, mtimeMs } = statSync(path);
  return { path, files: size > 0 ? 1 : 0, sizeBytes: size, newestMs: mtimeMs };
}
