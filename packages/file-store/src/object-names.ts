import { isFileId } from "@throughline/core/internal";
import type { FileScope } from "@throughline/core/internal";
import type { FileObject } from "./file-store.ts";

/** Describes an object that holds a file. */
export interface KeptObject extends FileObject {
  /** States the id of the file. */
  readonly id: string;
  /** Counts the bytes of the file, before they are coded. */
  readonly fileBytes: number;
  /** Identifies the put that wrote the object. Chunks of a coded object are bound to it. */
  readonly upload: string;
  readonly isCoded: boolean;
}

/** Names the folders of one namespace and agent. No valid namespace begins with `_`. */
export function scopeFolder({ namespace, agentId }: FileScope): string {
  return `${namespace === "" ? "_default" : namespace}/${agentId}/`;
}

const filesFolder = "files/";
const codedEnd = "coded";

export function filesOf(scope: FileScope): string {
  return `${scopeFolder(scope)}${filesFolder}`;
}

/** Names what is being uploaded, whose id is not known before its end. */
export function uploadsOf(scope: FileScope): string {
  return `${scopeFolder(scope)}uploads/`;
}

/** Names the notes of objects that a purge or a redaction is about to make useless. */
export function deletionsOf(scope: FileScope): string {
  return `${scopeFolder(scope)}deletions/`;
}

/** Every put has a name of its own, so that the deletion of an earlier put never reaches a later one. */
export function objectName(
  scope: FileScope,
  {
    id,
    bytes,
    upload,
    isCoded,
  }: {
    readonly id: string;
    readonly bytes: number;
    readonly upload: string;
    readonly isCoded: boolean;
  },
): string {
  return `${filesOf(scope)}${id}.${bytes}.${upload}${isCoded ? `.${codedEnd}` : ""}`;
}

/** Returns what the name of an object states, or null for an object that is no file of ours. */
export function keptObject(object: FileObject): KeptObject | null {
  const [id, bytes = "", upload = "", end, ...rest] = object.name.slice(object.name.lastIndexOf("/") + 1).split(".");
  const isOurs = isFileId(id) && /^\d{1,15}$/.test(bytes) && upload !== "" && rest.length === 0;
  if (!isOurs || (end !== undefined && end !== codedEnd)) return null;
  return { ...object, id, fileBytes: Number(bytes), upload, isCoded: end !== undefined };
}

/** Returns the namespace and the agent of an object, or null for one that is no file of ours. */
export function scopeOf(name: string): FileScope | null {
  const [namespace = "", agentId = "", folder, ...rest] = name.split("/");
  if (`${folder}/` !== filesFolder || rest.length !== 1) return null;
  return { namespace: namespace === "_default" ? "" : namespace, agentId };
}
