import { join } from "node:path";
import { abortedBefore, createFinding, shellWord } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import type { Finding } from "@throughline/core";
import { strangeTranscript } from "@throughline/openclaw-format/internal";
import { findTranscriptFiles, foldersIn, readChunks } from "./node/transcript-files.ts";

/**
 * Finds transcripts in the folder of a JSON Lines store that no store can read, for example with lone carriage returns
 * as line ends. Another program put them there, or changed them in a copy. The store reads such a file as one torn
 * line, so its session is empty or not listed.
 * @throws {ThroughlineError} FILE_UNREADABLE, ABORTED
 */
export async function* inspectStoreFolder(root: string, signal?: AbortSignal): AsyncGenerator<Finding, void, void> {
  // The check covers every namespace and agent, like the store's own check.
  for (const folder of storeFolders(root)) {
    for (const { path, kind } of findTranscriptFiles(folder)) {
      if (signal?.aborted) throw abortedBefore("all files were looked at", signal);
      const finding = kind === "transcript" ? await strangeFile(path) : null;
      if (finding !== null) yield finding;
    }
  }
}

/** Leaves time to move: a JSON Lines store holds the entries of an agent in memory, up to 100,000 sessions. */
const warnedSessions = 80_000;

/** Warns before a JSON Lines store has more sessions of an agent than it is made for. */
export function* inspectStoreSize(root: string, most: number = warnedSessions): Generator<Finding, void, void> {
  for (const folder of storeFolders(root)) {
    let count = 0;
    for (const { kind } of findTranscriptFiles(folder)) if (kind === "transcript") count++;
    if (count <= most) continue;
    const message = `${count.toLocaleString("en")} transcripts are in the folder. JSON Lines stores are made for up to 100,000.`;
    const remedy = `Copy the store to SQLite: \`throughline copy --all --store ${shellWord(`jsonl:${root}`)} --to-store sqlite:sessions.db\``;
    yield { ...createFinding("LOG_OVERSIZED", message, { path: folder }), remedy };
  }
}

function storeFolders(root: string): readonly string[] {
  const namespaces = foldersIn(join(root, "namespaces")).map((name) => join(root, "namespaces", name));
  return [root, ...namespaces].flatMap(sessionFolders);
}

function sessionFolders(namespace: string): readonly string[] {
  const agents = join(namespace, "agents");
  return foldersIn(agents).flatMap((agentId) =>
    foldersIn(join(agents, agentId)).includes("sessions") ? [join(agents, agentId, "sessions")] : [],
  );
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
    // The store's own check reports unreadable files. A file that was deleted during the check is no transcript.
    if (!ThroughlineError.isInstance(error)) throw error;
  }
  return null;
}
