import { crc32 } from "node:zlib";
import { createFinding, isAgentId, quote } from "@throughline/core/internal";
import { type Finding, type SessionRef, ThroughlineError } from "@throughline/core";
import { flushFolder, flushFolders, folderOf, makeFolders, notAFolderRemedy, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";

/** Where everything of one agent lies. In `sessions` there is nothing that OpenClaw does not expect there. */
export interface AgentFolder {
  readonly agent: string;
  readonly sessions: string;
  readonly sessionsJson: string;
  readonly own: string;
  readonly entriesLog: string;
  readonly entriesLock: string;
  /** Derived from the entries log and the transcripts; opened by SQLite alone. */
  readonly index: string;
  /** What this store wrote into sessions.json last: the base of the three-way merge. */
  readonly viewBase: string;
  /** The same for what it is about to write. */
  readonly viewNext: string;
  /** Stands here where OpenClaw was met: then its lock files are taken too. */
  readonly openclawMark: string;
  readonly torn: string;
  /** The open replies of sessions. */
  readonly partials: string;
  /** Marks of files whose flush failed. */
  readonly unflushed: string;
  /** Copies that a repair made, with what it removed. */
  readonly repaired: string;
  sessionLock(sessionId: string): string;
  session(fileName: string): string;
  /** A name for a file in the making, on the same file system. */
  temporary(name: string): string;
}

/** Behind the names of files in the making. */
export const temporaryEnd = ".tmp";

/** The lock file of a session: one of sixteen, so that sessions seldom wait for one another. */
function lockNameOf(sessionId: string): string {
  return (crc32(sessionId) & 0xf).toString(16);
}

export type AgentAddress = Pick<SessionRef, "namespace" | "agentId">;

export function agentsFolder(root: string, namespace: string): string {
  return namespace === "" ? `${root}/agents` : `${root}/namespaces/${namespace}/agents`;
}

export function oddFolderFinding(path: string): Finding {
  const message =
    "A link or a file stands where an agent's folder belongs: its sessions are left out until that is there.";
  return createFinding("FILE_UNREADABLE", message, { path });
}

/** The namespaces of a store; the first is that of sessions without one. */
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
    viewBase: `${own}/sessions-view.json`,
    viewNext: `${own}/sessions-view.next.json`,
    openclawMark: `${own}/openclaw-was-here`,
    torn: `${own}/torn`,
    partials: `${own}/partials`,
    repaired: `${own}/repaired`,
    unflushed: `${own}/unflushed`,
    sessionLock: (sessionId) => `${own}/locks/${lockNameOf(sessionId)}`,
    session: (fileName) => `${sessions}/${fileName}`,
    temporary: (name) => `${own}/${name}${temporaryEnd}`,
  };
}

/**
 * Whether the agent has a folder here. The root is no symbolic link, nor any part of the way from there.
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
  ]) {
    const facts = withFileErrors(path, () => files.facts(path));
    if (facts !== null) assertFolder(path, facts.kind);
  }
  return true;
}

/**
 * Makes what is missing of the agent's folders, and what is there of them private. What is there is put on the disk too
 * while the entries log has nothing in it: a log with a line in it stands for folders that are.
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
      // The root may be the user's own folder, with other things in it.
      if (facts !== null && each !== root && !facts.isPrivate) makePrivate(files, each);
      if (facts !== null) return;
      makeFolders(files, each);
    });
  }
}

/**
 * Makes the store's own folder of an agent again, with what belongs in it: somebody removed it, or part of it, while it
 * was in use. An agent's folder that is gone as a whole stays away, for its sessions are. `locks`: the folder of its locks.
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

/** The name of a folder that is there: who made it may be a program that flushes nothing, or one that was killed before. */
function flushMade(files: Files, path: string): void {
  try {
    files.flushFolder(folderOf(path));
  } catch (error) {
    // A folder above the root that nobody may look into is not ours to answer for.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "EPERM" && code !== "EROFS") throw error;
  }
}

/** Another program made it, as its umask would have it. */
function makePrivate(files: Files, path: string): void {
  try {
    files.makePrivate(path);
  } catch (error) {
    // Another user's, whose business it is: `verify` says so, and what we put there is for us alone.
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
