import { type Files, nodeFiles } from "../src/files.ts";

export interface FaultyFiles {
  readonly files: Files;
  /** Calls since the last reset, by name, and the bytes that went through them. */
  readonly counts: Record<string, number>;
  /** The next call of this name throws, once. */
  failNext(call: "write" | "flush" | "truncate" | "rename", code: string): void;
  /** From now on the disk takes so many bytes more: a write is cut short there, and the next one fails. */
  limitBytes(left: number): void;
  /** Before a write reaches the file, and only once. */
  beforeNextWrite(work: (handle: number) => void): void;
  reset(): void;
}

/** The real file system with faults in it, counted. */
export function faultyFiles(): FaultyFiles {
  const counts: Record<string, number> = {};
  const failures = new Map<string, string>();
  let left = Infinity;
  let intruder: ((handle: number) => void) | null = null;
  const count = (name: string, by = 1): void => void (counts[name] = (counts[name] ?? 0) + by);
  const failIfAsked = (name: string): void => {
    const code = failures.get(name);
    failures.delete(name);
    if (code !== undefined) throw Object.assign(new Error(`${code}: injected`), { code });
  };
  const counted = Object.fromEntries(
    Object.entries(nodeFiles).map(([name, call]) => [
      name,
      (...parameters: unknown[]) => {
        count(name);
        failIfAsked(name);
        return Reflect.apply(call as (...all: unknown[]) => unknown, nodeFiles, parameters);
      },
    ]),
  ) as unknown as Files;
  return {
    counts,
    failNext: (call, code) => void failures.set(call, code),
    limitBytes: (bytes) => void (left = bytes),
    beforeNextWrite: (work) => void (intruder = work),
    reset() {
      for (const name of Object.keys(counts)) delete counts[name];
      failures.clear();
      left = Infinity;
    },
    files: {
      ...counted,
      read(handle, into, position) {
        const read = counted.read(handle, into, position);
        count("bytesRead", read);
        return read;
      },
      write(handle, bytes) {
        const work = intruder;
        intruder = null;
        work?.(handle);
        if (left <= 0) throw Object.assign(new Error("ENOSPC: injected"), { code: "ENOSPC" });
        const written = counted.write(handle, bytes.subarray(0, left));
        left -= written;
        count("bytesWritten", written);
        return written;
      },
      truncate(handle, sizeBytes) {
        const before = nodeFiles.factsOf(handle).sizeBytes;
        counted.truncate(handle, sizeBytes);
        left += before - sizeBytes;
      },
      async flush(handle) {
        count("flush");
        failIfAsked("flush");
        await nodeFiles.flush(handle);
      },
    },
  };
}
