import type { SessionVersion } from "@throughline/foreign-formats/internal";

/** Decides which files a search opens, and receives what it finds. */
export interface SearchLook {
  /** Returns false for a folder that need not be listed. */
  entersFolder(path: string): boolean;
  /**
   * Returns true if a file is as an earlier import left it, together with the files that belong to it. The search then
   * does not open them.
   *
   * @param others paths of further files, of which any may be missing
   */
  isKnown(path: string, others?: () => Iterable<string> | AsyncIterable<string>): Promise<boolean>;
  /**
   * Returns true if an earlier import read this version of a session in a database. The search then does not read it.
   *
   * @param path the path of the database, `#` and the id of the session
   */
  isKnownSession(path: string, version: SessionVersion): boolean;
  /** Returns true if the file is known to hold no title of another session. Costs no access to the file. */
  hasNoTitles(path: string): boolean;
  /** Receives whether a file holds titles of other sessions. */
  sawTitles(path: string, hasTitles: boolean): void;
  /** Returns the ids of the sessions that an earlier search found in a file. */
  sessionIdsOf(path: string): readonly string[];
  /** Receives the id of a session in a file. */
  sawSession(path: string, sessionId: string): void;
  /** Returns true if a known file is larger now. */
  hasGrown(path: string): boolean;
  /** Receives that what such a file gained was imported, so that the search passes over it. */
  tookGrowth(path: string): void;
}

/** Opens every file. */
export const fullLook: SearchLook = {
  entersFolder: () => true,
  isKnown: () => Promise.resolve(false),
  isKnownSession: () => false,
  hasNoTitles: () => false,
  sawTitles: () => {},
  sessionIdsOf: () => [],
  sawSession: () => {},
  hasGrown: () => false,
  tookGrowth: () => {},
};
