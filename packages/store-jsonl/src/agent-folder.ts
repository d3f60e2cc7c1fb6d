import { crc32 } from "node:zlib";
import { createFinding, isAgentId, quote } from "@throughline/core/internal";
import { type Finding, type SessionRef, ThroughlineError } from "@throughline/core";
import { flushFolder, flushFolders, folderOf, makeFolders, notAFolderRemedy, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";

/** The folder `sessions` contains only files that OpenClaw expects there. All other files of the store are in `own`. */
export interface AgentFolder {
  readonly agent: string;
  readonly sessions: string;
  readonly sessionsJson: string;
  readonly own: string;
  readonly entriesLog: string;
  readonly entriesLock: string;
  /**
   * Only SQLite opens the index, because closing another descriptor would drop SQLite's locks. The index can be rebuilt
   * from the entries log and the transcripts.
   */
  readonly index: string;
  /** Holds vectors for search by meaning. They can be computed again. The rule for the index holds here too. */
  readonly vectors: string;
  /** Holds what this store last wrote into sessions.json, because that is the base of the three-way merge. */
  readonly viewBase: string;
  /** Holds what this store is about to write into sessions.json. After a crash it shows whether the write succeeded. */
  readonly viewNext: string;
  readonly torn: string;
  readonly partials: string;
  readonly files: string;
  readonly fileReferences: string;
  readonly filesLock: string;
  /** Holds marks of files whose flush failed, so that other processes flush them again. */
  readonly unflushed: string;
  readonly repaired: string;
  /** Maps a session to one of sixteen lock files, so that sessions rarely wait for each other. */
  sessionLock(sessionId: string): string;
  session(fileName: string): string;
  /** Returns a path for an unfinished file. It is on the same file system, so that a rename can move it. */
  temporary(name: string): string;
}

export const temporaryEnd = ".tmp";

export type AgentAddress = Pick<SessionRef, "namespace" | "agentId">;

export function agentsFolder(root: string, namespace: string): string {
  return namespace === "" ? `${root}/agents` : `${root}/namespaces/${namespace}/agents`;
}

export function oddFolderFinding(path: string): Finding {
  const message =
    "A link or a file stands where an agent's folder belongs: its sessions are left out until that is there.";
  return createFinding("FILE_UNREADABLE", message, { path });
}

/** Returns the namespaces of a store. The first one is "", which stands for sessions without a namespace. */
export function namespacesIn({ root, files }: { readonly root: string; readonly files: Files }): readonly string[] {
  const folder = `${root}/namespaces`;
  const names = withFileErrors(folder, () => (files.facts(folder)?.kind === "folder" ? files.names(folder) : []));
  return ["", ...names.filter((name) => isAgentId(name)).toSorted()];
}

export function agentFolder(root: string, { namespace, agentId }: AgentAddress): AgentFolder {
  const agent = `${agentsFolder(root, namespace)}/${agentId}`;
  const own = `${agent}/throughline`;
  const sessions = `${agent}/sessions`;
  return {
    agent,
    sessions,
    sessionsJson: `${sessions}/sessions.json`,
    own,
    entriesLog: `${own}/entries.log`,
    entriesLock: `${own}/locks/entries`,
    index: `${own}/index.db`,
    vectors: `${own}/vectors.db`,
    viewBase: `${own}/sessions-view.json`,
    viewNext: `${own}/sessions-view.next.json`,
    torn: `${own}/torn`,
    partials: `${own}/partials`,
    files: `${own}/files`,
    fileReferences: `${own}/file-references`,
    filesLock: `${own}/locks/files`,
    repaired: `${own}/repaired`,
    unflushed: `${own}/unflushed`,
    sessionLock: (sessionId) => `${own}/locks/${(crc32(sessionId) & 0xf).toString(16)}`,
    session: (fileName) => `${sessions}/${fileName}`,
    temporary: (name) => `${own}/${name}${temporaryEnd}`,
  };
}

/**
 * Tests whether the agent has a folder. No part of the path may be a symbolic link, because a link could lead out of
 * the root.
 * @throws {ThroughlineError} PATH_UNSAFE, ID_CASE_COLLISION
 */
export function agentFolderExists(files: Files, root: string, address: AgentAddress): boolean {
  let parent = root;
  const atRoot = withFileErrors(root, () => files.facts(root));
  if (atRoot !== null) assertFolder(root, atRoot.kind);
  for (const name of wayTo(address)) {
    const path = `${parent}/${name}`;
    const facts = withFileErrors(path, () => files.facts(path));
    if (facts === null) {
      assertNoCaseTwin(files, parent, name);
      return false;
    }
    assertFolder(path, facts.kind);
    parent = path;
  }
  for (const path of [
    `${parent}/sessions`,
    `${parent}/throughline`,
    `${parent}/throughline/locks`,
    `${parent}/throughline/torn`,
    `${parent}/throughline/repaired`,
    `${parent}/throughline/partials`,
    `${parent}/throughline/files`,
    `${parent}/throughline/file-references`,
  ]) {
    const facts = withFileErrors(path, () => files.facts(path));
    if (facts !== null) assertFolder(path, facts.kind);
  }
  return true;
}

/**
 * Creates the missing folders of an agent and makes existing ones private. While the entries log is empty, existing
 * folders are flushed too. A log with a line proves that they were flushed before.
 * @throws {ThroughlineError} PATH_UNSAFE, ID_CASE_COLLISION, STORE_READ_ONLY
 */
export function makeAgentFolder(files: Files, root: string, address: AgentAddress): void {
  agentFolderExists(files, root, address);
  flushFolders(files);
  const folder = agentFolder(root, address);
  let path = root;
  const own = ["sessions", "throughline", "throughline/locks", "throughline/torn"].map(
    (name) => `${folder.agent}/${name}`,
  );
  const way = wayTo(address).map((name) => (path = `${path}/${name}`));
  const isNew = (withFileErrors(folder.entriesLog, () => files.facts(folder.entriesLog))?.sizeBytes ?? 0) === 0;
  for (const each of [root, ...way, ...own]) {
    withFileErrors(each, () => {
      const facts = files.facts(each);
      if (facts !== null && isNew) flushMade(files, each);
      // The root may be the user's own folder with other content, so its mode stays.
      if (facts !== null && each !== root && !facts.isPrivate) makePrivate(files, each);
      if (facts !== null) return;
      makeFolders(files, each);
    });
  }
}

/**
 * Creates the store's own folder again after another process removed all or part of it during use. It does not recreate
 * an agent's folder that is gone as a whole, because its sessions are gone too. `locks` is the path of its lock folder.
 * @throws {ThroughlineError} PATH_UNSAFE, STORE_READ_ONLY, STORE_IO
 */
export function remakeOwnFolder(files: Files, locks: string): void {
  const own = folderOf(locks);
  for (const each of [own, locks, `${own}/torn`]) {
    withFileErrors(each, () => {
      files.makeFolder(each);
      assertFolder(each, files.facts(each)?.kind ?? "missing");
      flushFolder(files, folderOf(each));
    });
  }
}

/**
 * Flushes the name of an existing folder. Its creator may have flushed nothing, or may have been killed before the
 * flush.
 */
function flushMade(files: Files, path: string): void {
  try {
    files.flushFolder(folderOf(path));
  } catch (error) {
    // A folder above the root that this process may not read is not the store's responsibility.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "EPERM" && code !== "EROFS") throw error;
  }
}

/** Removes the access of others, because another program created the folder with its own umask. */
function makePrivate(files: Files, path: string): void {
  try {
    files.makePrivate(path);
  } catch (error) {
    // The folder belongs to another user, who decides its mode. `verify` reports the mode, and the store's own files
    // are private anyway.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EPERM" && code !== "EROFS") throw error;
  }
}

function wayTo({ namespace, agentId }: AgentAddress): readonly string[] {
  return namespace === "" ? ["agents", agentId] : ["namespaces", namespace, "agents", agentId];
}

function assertFolder(path: string, kind: string): void {
  if (kind === "folder") return;
  throw new ThroughlineError("PATH_UNSAFE", `${quote(path)} is a link or a file where a folder belongs.`, {
    outcome: "not-applied",
    details: { path },
    remedy: notAFolderRemedy,
  });
}

function assertNoCaseTwin(files: Files, parent: string, name: string): void {
  if (files.facts(parent) === null) return;
  const twin = withFileErrors(parent, () => files.names(parent)).find(
    (other) => other !== name && other.toLowerCase() === name.toLowerCase(),
  );
  if (twin === undefined) return;
  throw new ThroughlineError("ID_CASE_COLLISION", `The id ${quote(name)} meets ${quote(twin)}.`, {
    outcome: "not-applied",
    details: { id: name, holder: twin },
  });
}
