import { realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { imageTypeOf } from "@throughline/history/internal";
import { ThroughlineError } from "@throughline/core";
import { providerLimits, refused } from "@throughline/core/internal";
import { type AgentContext, conversationFolder } from "../agent-context.ts";
import { fileRules } from "../workspace-tools.ts";

/** Holds a file that a person named, with the media type that the provider reads. */
export interface NamedFile {
  readonly kind: "file";
  /** Holds the name as it was typed. */
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

interface NamedFileOptions {
  /** Names the wire shape of the provider, whose limits hold. */
  readonly api: string;
  /** Returns whether the person agreed to send this file. @param path the path after every link */
  isAgreed(path: string): boolean;
}

/** A file needs a second yes if the model could not open it by itself. */
type NeedsYes = { readonly kind: "ask"; readonly path: string; readonly why: "outside" | "hidden" };

/** A text fills the context window, so it may have fewer bytes than an image. */
const mostTextBytes = 262_144;
/** Some providers state no limit. */
const mostFileBytes = 50_000_000;
const pdf = "application/pdf";
const text = "text/plain";

/**
 * Reads a file that a person named in a message: from the folder of the conversation, or from elsewhere once the person
 * agreed. The files of Throughline itself are never read.
 * @returns null where no file has this name: the words are only words
 * @throws {ThroughlineError} FILE_TOO_LARGE, FILE_UNREADABLE
 */
export async function readNamedFile(
  context: AgentContext,
  name: string,
  { api, isAgreed }: NamedFileOptions,
): Promise<NamedFile | NeedsYes | null> {
  const folder = conversationFolder(context);
  const expanded = name.startsWith("~/") ? join(context.userHome, name.slice(2)) : name;
  const path = await fileAt(resolve(folder, expanded), name);
  if (path === null) return null;
  const { hasHiddenName, readWholeFile } = await import("@throughline/tools/internal");
  const below = relative(folder, path);
  const isOutside = below === ".." || below.startsWith(`..${sep}`) || isAbsolute(below);
  const isHidden = !isOutside && hasHiddenName(below.split(sep), "read");
  if ((isOutside || isHidden) && !isAgreed(path)) return { kind: "ask", path, why: isOutside ? "outside" : "hidden" };
  const root = isOutside ? dirname(path) : folder;
  const rules = { root, ...fileRules(context, root), allow: [relative(root, path)] };
  let most = 0;
  const read = await readWholeFile(rules, path, (head) => (most = mostBytes(typeOf(head), api)));
  if (read.kind === "refused") throw unreadable(name, read.reason);
  if (read.kind === "too-large") throw tooLarge(name, read.sizeBytes, most);
  const mediaType = typeOf(read.bytes);
  if (mediaType === text && !isPlainText(read.bytes)) throw unreadable(name, `"${name}" is no text, image or PDF.`);
  return { kind: "file", name, mediaType, bytes: read.bytes };
}

/** Returns the path after every link; null for a folder, and where nothing has this name. */
async function fileAt(path: string, name: string): Promise<string | null> {
  try {
    const real = await realpath(path);
    return (await stat(real)).isDirectory() ? null : real;
  } catch (error) {
    const { code } = error as { readonly code?: string };
    if (code !== undefined && noFile.has(code)) return null;
    throw unreadable(name, `"${name}" could not be opened (${code ?? "unknown"}).`, error);
  }
}

const noFile: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ERR_INVALID_ARG_VALUE"]);

function mostBytes(mediaType: string, api: string): number {
  if (mediaType === text) return mostTextBytes;
  const limits = Object.entries(providerLimits).find(([name]) => name === api)?.[1];
  return Math.min(mostFileBytes, (mediaType === pdf ? limits?.maxFileBytes : limits?.maxImageBytes) ?? Infinity);
}

/** The first bytes decide, as they do when the file is sent. */
function typeOf(bytes: Uint8Array): string {
  const head = Buffer.from(bytes.subarray(0, 24));
  return imageTypeOf(head.toString("base64")) ?? (head.includes("%PDF-") ? pdf : text);
}

function isPlainText(bytes: Uint8Array): boolean {
  try {
    return !new TextDecoder("utf-8", { fatal: true }).decode(bytes).includes("\0");
  } catch {
    return false;
  }
}

function unreadable(path: string, message: string, cause?: unknown): Error {
  return refused("FILE_UNREADABLE", message, { path }, cause);
}

function tooLarge(path: string, sizeBytes: number, mostBytes: number): Error {
  const [size, most] = [sizeBytes, mostBytes].map((bytes) => `${Math.ceil(bytes / 1000).toLocaleString("en-US")} kB`);
  return new ThroughlineError("FILE_TOO_LARGE", `"${path}" has ${size}, and a message takes ${most} of it at most.`, {
    details: { path, sizeBytes, mostBytes },
    remedy: "Send a part of it, or name a text without @: the model reads long files in parts.",
  });
}
