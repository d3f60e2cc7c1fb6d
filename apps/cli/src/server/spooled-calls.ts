import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { parseStoreUrl } from "@throughline/config";
import type { CommandContext } from "../command.ts";
import { counted } from "../counted.ts";

/** Reports gateway calls in spool files, which may hold the removed content. A remote server reports its own. */
export async function noteSpooledCalls({ host, output, storeUrl, tokenPlaces }: CommandContext): Promise<void> {
  if (parseStoreUrl(storeUrl, host.workingDirectory).scheme === "http") return;
  const folder = join(tokenPlaces.home, "spool");
  const files = (await readdir(folder).catch(none)).filter((name) => /\.call(?:\.failed)?$/.test(name));
  if (files.length === 0) return;
  output.note(
    `${counted(files.length, "call")} of the gateway in ${JSON.stringify(folder)} may hold it. Start the server, which stores them without it, or delete the files.`,
  );
}

function none(error: NodeJS.ErrnoException): readonly string[] {
  if (error.code === "ENOENT") return [];
  throw error;
}
