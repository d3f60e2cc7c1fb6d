import { createHash } from "node:crypto";
import {
  applied,
  applyNames,
  parentOf,
  type DataChange,
  type DiskImage,
  type DiskMoment,
  type DiskNode,
} from "./simulated-disk.ts";

export interface CrashOptions {
  /** A write that may be torn is cut at every so many bytes, and at the ends. 1: at every byte. */
  readonly cutEveryBytes: number;
}

/**
 * What a power cut may leave of the disk as it is at one moment: any set of the changes of names, any beginning of the
 * unflushed data of each file, the last write torn, writes whose size arrived and whose bytes did not (zeros).
 */
export function* crashStates(moment: DiskMoment, options: CrashOptions): Generator<DiskImage> {
  for (const names of nameStates(moment)) {
    const files = [...names].filter(([, node]) => !node.isFolder);
    const dirty = files.filter(([, node]) => (moment.data.get(node)?.pending.length ?? 0) > 0);
    if (dirty.length === 0) yield imageOf(names, moment, new Map());
    for (const [, varied] of dirty) {
      for (const content of contentStates(moment, varied, options)) {
        for (const others of dirty.length === 1 ? (["least"] as const) : extremes) {
          const chosen = new Map(dirty.map(([, node]) => [node, extremeContent(moment, node, others)]));
          yield imageOf(names, moment, chosen.set(varied, content));
        }
      }
    }
  }
}

/**
 * What the other files may hold meanwhile. `sizes`: ext4 puts the sizes of all files on the disk with its journal, and
 * the bytes of an append to a block that was there already come when they come.
 */
const extremes = ["least", "most", "sizes"] as const;

/** One text for each image. */
export function imageDigest(image: DiskImage): string {
  const files = [...image].map(([path, bytes]) => `${path}\0${bytes === null ? "folder" : digestOf(bytes)}`);
  return createHash("sha1").update(files.toSorted().join("\0")).digest("base64");
}

/** Most files are the same in most images of a moment. Content is never changed in place. */
const digests = new WeakMap<Uint8Array, string>();

function digestOf(bytes: Uint8Array): string {
  const known = digests.get(bytes) ?? createHash("sha1").update(bytes).digest("base64");
  digests.set(bytes, known);
  return known;
}

const maxSubsets = 5;

/** Every set of the pending changes of names while they are few; every beginning of them when they are many. */
function* nameStates({ durableNames, pendingNames }: DiskMoment): Generator<Map<string, DiskNode>> {
  const count = pendingNames.length;
  const isFew = count <= maxSubsets;
  for (let choice = 0; choice < (isFew ? 2 ** count : count + 1); choice++) {
    const names = new Map(durableNames);
    for (const [index, change] of pendingNames.entries())
      if (isFew ? (choice >> index) % 2 === 1 : index < choice) applyNames(names, change);
    yield withoutLost(names);
  }
}

/** What lies in a folder that did not arrive is not there either. */
function withoutLost(names: Map<string, DiskNode>): Map<string, DiskNode> {
  for (const path of [...names.keys()].toSorted())
    if (path !== "/" && names.get(parentOf(path))?.isFolder !== true) names.delete(path);
  return names;
}

function* contentStates(moment: DiskMoment, node: DiskNode, options: CrashOptions): Generator<Uint8Array> {
  const { durable, pending } = dataOf(moment, node);
  // What was flushed is there in any case; what comes before it too, but for bytes whose own flush failed.
  const certain = pending.findLastIndex(({ state }) => state === "synced") + 1;
  for (let count = certain; count <= pending.length; count++) {
    const before = pending.slice(0, count);
    for (const missing of missingWrites(before)) yield contentOf(durable, before, missing);
    const next = pending[count];
    if (next?.kind !== "write") continue;
    const content = contentOf(durable, before, new Set());
    for (const size of cuts(next.bytes.length, options.cutEveryBytes)) {
      yield applied(content, { ...next, bytes: next.bytes.subarray(0, size) });
      // The size arrived, and of the bytes only some.
      yield applied(withoutBytes(content, next), { ...next, bytes: next.bytes.subarray(0, size) });
    }
  }
}

/** Sets of writes whose bytes did not arrive although later changes did. */
function missingWrites(changes: readonly DataChange[]): readonly ReadonlySet<DataChange>[] {
  const uncertain = changes.filter(({ kind, state }) => kind === "write" && state !== "synced").slice(-4);
  const doubtful = changes.filter(({ kind, state }) => kind === "write" && state === "doubtful");
  const subsets = Array.from(
    { length: 2 ** uncertain.length },
    (_, choice) => new Set(uncertain.filter((_change, index) => (choice >> index) % 2 === 1)),
  );
  return [...subsets, new Set(doubtful)];
}

function contentOf(durable: Uint8Array, changes: readonly DataChange[], missing: ReadonlySet<DataChange>): Uint8Array {
  let content = durable;
  for (const change of changes)
    content = missing.has(change) ? withoutBytes(content, change) : applied(content, change);
  return content;
}

/** Content after a write of which the size alone arrived: zeros where the file grew, and what there was where it did not. */
function withoutBytes(content: Uint8Array, { at, bytes }: DataChange): Uint8Array {
  return applied(content, { kind: "write", at: at + bytes.length, bytes: new Uint8Array(0) });
}

function extremeContent(moment: DiskMoment, node: DiskNode, which: (typeof extremes)[number]): Uint8Array {
  const { durable, pending } = dataOf(moment, node);
  const certain = pending.findLastIndex(({ state }) => state === "synced") + 1;
  if (which === "least") return contentOf(durable, pending.slice(0, certain), new Set());
  const missing = which === "sizes" ? pending.filter(({ state }) => state !== "synced") : [];
  return contentOf(durable, pending, new Set(missing));
}

function cuts(sizeBytes: number, every: number): readonly number[] {
  const sizes = new Set([1, 2, sizeBytes - 2, sizeBytes - 1]);
  for (let size = every; size < sizeBytes; size += every) sizes.add(size);
  return [0, ...sizes].filter((size) => size >= 0 && size < sizeBytes).toSorted((one, other) => one - other);
}

function imageOf(
  names: ReadonlyMap<string, DiskNode>,
  moment: DiskMoment,
  chosen: ReadonlyMap<DiskNode, Uint8Array>,
): DiskImage {
  return new Map(
    [...names].map(([path, node]) => [
      path,
      node.isFolder ? null : (chosen.get(node) ?? extremeContent(moment, node, "least")),
    ]),
  );
}

function dataOf(
  moment: DiskMoment,
  node: DiskNode,
): { readonly durable: Uint8Array; readonly pending: readonly DataChange[] } {
  return moment.data.get(node) ?? { durable: node.durable, pending: [] };
}
