/** What the first bytes of a file say, or that there are none. */
export interface FileHeader {
  readonly isEmpty: boolean;
  readonly isSqlite: boolean;
  readonly applicationId: number;
  readonly userVersion: number;
  /** False for a file without a log that ends within a page: SQLite would take the rest of it for zeros. */
  readonly isWhole: boolean;
}

/** What the first hundred bytes of a file say; `length`: how many of them there were. */
export function headerOf(bytes: Buffer, length: number): Omit<FileHeader, "isWhole"> {
  return {
    isEmpty: length === 0,
    isSqlite: length === 100 && bytes.toString("latin1", 0, 16) === "SQLite format 3\0",
    applicationId: bytes.readUInt32BE(68),
    userVersion: bytes.readUInt32BE(60),
  };
}
