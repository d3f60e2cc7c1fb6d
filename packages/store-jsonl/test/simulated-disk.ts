import type { FileFacts, Files, OpenMode } from "../src/files.ts";

/** What a file system holds: the bytes of a file, null for a folder, by path. */
export type DiskImage = ReadonlyMap<string, Uint8Array | null>;

/** A change of a file's data. `synced`: a flush has put it on the disk. `doubtful`: a flush of it failed, and no later one tries again. */
export interface DataChange {
  readonly kind: "write" | "truncate";
  /** Where the bytes go, or the size. */
  readonly at: number;
  readonly bytes: Uint8Array;
  state: "dirty" | "synced" | "doubtful";
}

/** A file or folder, whatever it is called. */
export interface DiskNode {
  readonly id: number;
  readonly isFolder: boolean;
  content: Uint8Array;
  /** What is on the disk for certain. */
  durable: Uint8Array;
  /** What may be there beside it, in the order it happened. */
  pending: DataChange[];
  modified: bigint;
}

/** Names that come and go in one step: two for a rename. */
export interface NameChange {
  readonly folders: ReadonlySet<string>;
  readonly sets: readonly (readonly [path: string, node: DiskNode | null])[];
}

/** What the next crash may leave, as of one moment. */
export interface DiskMoment {
  readonly durableNames: ReadonlyMap<string, DiskNode>;
  readonly pendingNames: readonly NameChange[];
  /** The data of each node as of that moment. */
  readonly data: ReadonlyMap<DiskNode, { readonly durable: Uint8Array; readonly pending: readonly DataChange[] }>;
}

export interface SimulatedDisk {
  readonly files: Files;
  /** Called after every call that changed something, with its name: the moments at which a crash makes a difference. */
  onChange: (call: string) => void;
  /** Called before every call; throw here to let it fail. A write may be cut short by giving the bytes it still takes. */
  onCall: (call: string, path: string) => number | undefined;
  moment(): DiskMoment;
  /** What a reader sees now: also what a kill -9 leaves. */
  image(): DiskImage;
}

/** An error as the operating system gives it. */
export function systemError(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: simulated`), { code });
}

/** The rules a POSIX file system is held to, and no more: what was not flushed may be there or not. */
export function createSimulatedDisk(image: DiskImage = new Map([["/", null]])): SimulatedDisk {
  return new Simulation(image);
}

class Simulation implements SimulatedDisk {
  onChange: (call: string) => void = () => undefined;
  onCall: (call: string, path: string) => number | undefined = () => undefined;
  readonly files: Files;
  readonly #names: Map<string, DiskNode> = new Map();
  #durableNames: Map<string, DiskNode> = new Map();
  #pendingNames: NameChange[] = [];
  readonly #handles: Map<number, { readonly node: DiskNode; readonly path: string; readonly mode: OpenMode }> =
    new Map();
  #count = 0;
  #ticks = 1n;

  constructor(image: DiskImage) {
    for (const [path, bytes] of image) this.#names.set(path, this.#node(bytes));
    this.#durableNames = new Map(this.#names);
    this.files = this.#port();
  }

  moment(): DiskMoment {
    const nodes = new Set([...this.#names.values(), ...this.#durableNames.values()]);
    const data = [...nodes].map(
      (node) => [node, { durable: node.durable, pending: node.pending.map((each) => ({ ...each })) }] as const,
    );
    return {
      durableNames: new Map(this.#durableNames),
      pendingNames: [...this.#pendingNames],
      data: new Map(data),
    };
  }

  image(): DiskImage {
    return new Map([...this.#names].map(([path, node]) => [path, node.isFolder ? null : node.content]));
  }

  #port(): Files {
    return {
      open: (path, mode) => this.#open(path, mode),
      close: (handle) => void this.#handles.delete(handle),
      facts: (path) => this.#factsAt(path),
      factsOf: (handle) => factsFrom(this.#at(handle).node),
      read: (handle, into, position) => this.#read(handle, into, position),
      write: (handle, bytes) => this.#write("write", handle, bytes, this.#at(handle).node.content.length),
      writeAt: (handle, bytes, position) => this.#write("writeAt", handle, bytes, position),
      truncate: (handle, sizeBytes) => this.#truncate(handle, sizeBytes),
      flush: async (handle) => {
        const { node, path } = this.#at(handle);
        const upTo = node.pending.length;
        await new Promise((resolve) => setImmediate(resolve));
        this.#flush("flush", node, path, upTo);
      },
      flushNow: (handle) => {
        const { node, path } = this.#at(handle);
        this.#flush("flushNow", node, path, node.pending.length);
      },
      flushFolder: (path) => this.#flushFolder(path),
      flushFolderLater: async (path) => this.#flushFolder(path, "flushFolderLater"),
      makeFolder: (path) => {
        if (this.#names.has(path)) return;
        this.#call("makeFolder", path);
        this.#rename("makeFolder", [[path, this.#node(null)]]);
      },
      names: (path) => this.#namesIn(path),
      rename: (from, to) => {
        this.#call("rename", from);
        const node = this.#names.get(from);
        if (node === undefined) throw systemError("ENOENT");
        this.#rename("rename", [
          [from, null],
          [to, node],
        ]);
      },
      remove: (path) => {
        if (!this.#names.has(path)) return;
        this.#call("remove", path);
        this.#rename("remove", [[path, null]]);
      },
      removeFolder: (path) => {
        if (!this.#names.has(path) || this.#namesIn(path).length > 0) return;
        this.#call("removeFolder", path);
        this.#rename("removeFolder", [[path, null]]);
      },
      makePrivate: () => undefined,
      whereIs: (handle) => this.#at(handle).path,
      isWritable: () => true,
      realPath: (path) => path,
      fileSystem: () => "local",
    };
  }

  #call(name: string, path: string): number {
    return this.onCall(name, path) ?? Infinity;
  }

  #node(bytes: Uint8Array | null): DiskNode {
    const content = bytes ?? new Uint8Array(0);
    return {
      id: ++this.#count,
      isFolder: bytes === null,
      content,
      durable: content,
      pending: [],
      modified: this.#ticks++,
    };
  }

  #open(path: string, mode: OpenMode): number {
    this.#call("open", path);
    let node = this.#names.get(path);
    if (mode === "create") {
      if (node !== undefined) throw systemError("EEXIST");
      if (this.#names.get(parentOf(path))?.isFolder !== true) throw systemError("ENOENT");
      node = this.#node(new Uint8Array(0));
      this.#rename("create", [[path, node]]);
    }
    if (node === undefined) throw systemError("ENOENT");
    const handle = ++this.#count;
    this.#handles.set(handle, { node, path, mode });
    return handle;
  }

  #at(handle: number): { readonly node: DiskNode; readonly path: string; readonly mode: OpenMode } {
    const open = this.#handles.get(handle);
    // A handle that was closed while somebody still used it is what this simulation must never let pass.
    if (open === undefined) throw systemError("EBADF");
    return open;
  }

  #factsAt(path: string): FileFacts | null {
    const node = this.#names.get(path);
    return node === undefined ? null : factsFrom(node);
  }

  #read(handle: number, into: Uint8Array, position: number): number {
    const { content } = this.#at(handle).node;
    const part = content.subarray(position, position + into.length);
    into.set(part);
    return part.length;
  }

  #write(call: string, handle: number, bytes: Uint8Array, at: number): number {
    const { node, path } = this.#at(handle);
    const taken = bytes.slice(0, this.#call(call, path));
    if (taken.length === 0) return 0;
    this.#change(call, node, { kind: "write", at, bytes: taken, state: "dirty" });
    return taken.length;
  }

  #truncate(handle: number, sizeBytes: number): void {
    const { node, path } = this.#at(handle);
    this.#call("truncate", path);
    this.#change("truncate", node, { kind: "truncate", at: sizeBytes, bytes: new Uint8Array(0), state: "dirty" });
  }

  #change(call: string, node: DiskNode, change: DataChange): void {
    node.content = applied(node.content, change);
    node.modified = this.#ticks++;
    node.pending.push(change);
    this.onChange(call);
  }

  #flush(call: string, node: DiskNode, path: string, upTo: number): void {
    try {
      this.#call(call, path);
    } catch (error) {
      // The kernel takes the pages for clean now; whether they reached the disk nobody knows.
      for (const change of node.pending.slice(0, upTo)) if (change.state === "dirty") change.state = "doubtful";
      this.onChange(call);
      throw error;
    }
    for (const change of node.pending.slice(0, upTo)) if (change.state === "dirty") change.state = "synced";
    settle(node);
    this.onChange(call);
  }

  #flushFolder(path: string, call = "flushFolder"): void {
    this.#call(call, path);
    if (!this.#names.has(path)) throw systemError("ENOENT");
    // Names that depend on the same name stay in order, whichever folder is flushed.
    const touched = new Set<string>();
    for (const change of this.#pendingNames.toReversed()) {
      if (!change.folders.has(path) && !change.sets.some(([name]) => touched.has(name))) continue;
      for (const [name] of change.sets) touched.add(name);
    }
    const isKept = (change: NameChange): boolean => !change.sets.some(([name]) => touched.has(name));
    for (const change of this.#pendingNames) if (!isKept(change)) applyNames(this.#durableNames, change);
    this.#pendingNames = this.#pendingNames.filter(isKept);
    this.onChange(call);
  }

  #rename(call: string, sets: NameChange["sets"]): void {
    const change = { folders: new Set(sets.map(([path]) => parentOf(path))), sets };
    applyNames(this.#names, change);
    for (const folder of change.folders) {
      const node = this.#names.get(folder);
      if (node !== undefined) node.modified = this.#ticks++;
    }
    this.#pendingNames.push(change);
    this.onChange(call);
  }

  #namesIn(path: string): readonly string[] {
    if (this.#names.get(path)?.isFolder !== true) throw systemError("ENOENT");
    const prefix = path === "/" ? "/" : `${path}/`;
    const names = [...this.#names.keys()].filter((each) => each !== path && each.startsWith(prefix));
    return names.map((each) => each.slice(prefix.length)).filter((each) => !each.includes("/"));
  }
}

/** The folder a path lies in. */
export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/** Names after a change. */
export function applyNames(names: Map<string, DiskNode>, { sets }: NameChange): void {
  for (const [path, node] of sets) {
    if (node === null) names.delete(path);
    else names.set(path, node);
  }
}

/** Content after a change; a gap is filled with zeros, as the kernel does. */
export function applied(
  content: Uint8Array,
  { kind, at, bytes }: Pick<DataChange, "kind" | "at" | "bytes">,
): Uint8Array {
  if (kind === "truncate") return resized(content, at);
  const next = resized(content, Math.max(content.length, at + bytes.length));
  next.set(bytes, at);
  return next;
}

function resized(content: Uint8Array, sizeBytes: number): Uint8Array {
  const next = new Uint8Array(sizeBytes);
  next.set(content.subarray(0, sizeBytes));
  return next;
}

/** Takes over what is certain by now: everything before the first change that is not. */
function settle(node: DiskNode): void {
  while (node.pending[0]?.state === "synced") {
    node.durable = applied(node.durable, node.pending[0]);
    node.pending.shift();
  }
  // What was written over a doubtful change again, and flushed, is no longer in doubt.
  node.pending = node.pending.filter(
    (change, index) => !(change.state === "doubtful" && isCovered(node, change, index)),
  );
  if (node.pending[0]?.state === "synced") settle(node);
}

function isCovered({ pending }: DiskNode, change: DataChange, index: number): boolean {
  if (change.kind === "truncate") return false;
  const end = change.at + change.bytes.length;
  return pending
    .slice(index + 1)
    .some(
      (later) =>
        later.state === "synced" &&
        (later.kind === "write"
          ? later.at <= change.at && later.at + later.bytes.length >= end
          : later.at <= change.at),
    );
}

function factsFrom(node: DiskNode): FileFacts {
  return {
    identity: `1:${node.id}`,
    sizeBytes: node.content.length,
    modifiedNs: node.modified,
    kind: node.isFolder ? "folder" : "file",
    names: 1,
    isPrivate: true,
  };
}
