import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createFinding, ThroughlineError, shellWord } from "@throughline/core";
import type { Finding } from "@throughline/core";
import { strangeTranscript } from "@throughline/openclaw-format";
import type { CommandContext } from "./command.ts";
import { parseStoreUrl } from "@throughline/config/store-url";
import { findTranscriptFiles, readChunks } from "./transcript-files.ts";
import { assertReadable, isThere } from "@throughline/config/files";

/**
 * Transcripts among the files of a store of files that no store can read, as those whose lines end with carriage returns
 * alone: another program, or a copy through one, put them there. To the store such a file is one torn line, and its session
 * is not listed, or empty.
 */
export async function* strangeStoreFiles({ host, storeUrl, signal }: CommandContext): AsyncGenerator<Finding> {
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  if (address.scheme !== "jsonl") return;
  // All of it, as the store's own check does.
  const tenants = foldersIn(join(address.root, "namespaces")).map((name) => join(address.root, "namespaces", name));
  for (const folder of [address.root, ...tenants].flatMap(sessionFolders)) {
    for (const { path, kind } of findTranscriptFiles(folder, host.workingDirectory)) {
      signal.throwIfAborted();
      const finding = kind === "transcript" ? await strangeFile(path) : null;
      if (finding !== null) yield finding;
    }
  }
}

function sessionFolders(tenant: string): readonly string[] {
  const agents = join(tenant, "agents");
  return foldersIn(agents)
    .map((agentId) => join(agents, agentId, "sessions"))
    .filter((folder) => isThere(folder));
}

function foldersIn(path: string): readonly string[] {
  if (!isThere(path)) return [];
  assertReadable(path);
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

async function strangeFile(path: string): Promise<Finding | null> {
  const beginning = await firstChunk(path);
  const strange = beginning === null ? null : strangeTranscript(beginning);
  if (strange === null) return null;
  const finding = createFinding("TRANSCRIPT_FOREIGN", `The file ${strange.what}: nothing of it can be read here.`, {
    path,
    line: 1,
    byteOffset: 0,
  });
  const copying = `tr '\\r' '\\n' < ${shellWord(path)} > COPY.jsonl`;
  const importing = "`throughline import COPY.jsonl --key KEY`";
  return {
    ...finding,
    remedy: strange.endsInReturns
      ? `Make a copy with line feeds outside of the store, ${copying}, import it with ${importing}, and move the file out.`
      : `${strange.remedy} Move it out of the store's folder.`,
  };
}

async function firstChunk(path: string): Promise<Uint8Array | null> {
  try {
    for await (const chunk of readChunks(path)) return chunk;
  } catch (error) {
    // The store's own check says what cannot be read, and what has gone meanwhile is no transcript.
    if (!ThroughlineError.isInstance(error)) throw error;
  }
  return null;
}
