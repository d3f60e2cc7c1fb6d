import { resolve } from "node:path";
import { configProblem, expandHome, isThere, readBoundedBytes, rightsOf } from "@throughline/config/internal";
import { ThroughlineError } from "@throughline/core";
import { shellWord } from "@throughline/core/internal";
import type { MainKey } from "@throughline/encryption";
import { type AgentContext, homeOf } from "./agent-context.ts";

/** Asks a person for a passphrase, without showing it. */
export type AskPassphrase = (question: string) => Promise<string>;

export type KeyContext = Pick<AgentContext, "config" | "environment" | "workingDirectory" | "userHome">;

/**
 * Reads the main key from where the setting says. 64 hexadecimal digits, base64 of 32 bytes and a file of 32 bytes are keys,
 * and a recovery key is one. Another text is a passphrase.
 * @throws {ThroughlineError} CONFIG_INVALID for another setting, MAIN_KEY_WRONG when there is no key, PATH_UNSAFE
 */
export async function readMainKey(context: KeyContext, from: string, ask: AskPassphrase | null): Promise<MainKey> {
  const [kind, name] = [from.slice(0, from.indexOf(":")), from.slice(from.indexOf(":") + 1)];
  if (from === "prompt") {
    if (ask === null) throw noMainKey("nobody can be asked for the passphrase here");
    return keyOf(Buffer.from(await ask("Passphrase of the keyring: ")), "the passphrase is empty");
  }
  if (kind === "env" && name !== "")
    return keyOf(Buffer.from(context.environment[name] ?? ""), `the variable ${name} is not set`);
  if (kind === "file" && name !== "") {
    const path = mainKeyFile(context, name);
    if (!isThere(path)) throw noMainKey(`the file ${JSON.stringify(path)} does not exist`);
    assertPrivate(path);
    return keyOf(readBoundedBytes(path, { what: "main key", mostBytes: 4096 }), `the file ${path} is empty`);
  }
  const message = "encryption.mainKey must be file:PATH, env:NAME or prompt.";
  throw configProblem(null, message, { key: "encryption.mainKey" });
}

/** Returns the path of the file of a main key. */
export function mainKeyFile(context: KeyContext, name: string): string {
  return resolve(homeOf(context), expandHome(name, context.userHome) ?? name);
}

/**
 * A group may read the file, because a container gets its secrets so. On a read-only mount all users may read it, because
 * the rights cannot be changed there.
 * @throws {ThroughlineError} PATH_UNSAFE
 */
function assertPrivate(path: string): void {
  const { isOpenToOthers, isMountedReadOnly, isOwn } = rightsOf(path);
  if (!isOpenToOthers || isMountedReadOnly) return;
  const shown = JSON.stringify(path);
  const close = `chmod 600 ${shellWord(path)}`;
  const mount =
    "A mounted secret gets `mode: 0400` (Docker) or `defaultMode: 0400` (Kubernetes), and the user of the container";
  throw new ThroughlineError("PATH_UNSAFE", `Other users can read or change the main key ${shown}.`, {
    outcome: "not-applied",
    details: { path },
    remedy: isOwn ? `Close it: ${close}.` : `Close it as its owner: ${close}. ${mount}.`,
  });
}

const keyBytes = 32;

function keyOf(bytes: Buffer, whyNone: string): MainKey {
  const isText = bytes.every((byte) => (byte >= 32 && byte < 127) || byte === 9 || byte === 10 || byte === 13);
  if (bytes.byteLength === keyBytes && !isText) return { key: bytes };
  const text = withoutLineEnd(bytes.toString("utf8"));
  if (text.trim() === "") throw noMainKey(whyNone);
  if (/^[0-9a-f]{64}$/i.test(text)) return { key: Buffer.from(text, "hex") };
  const decoded = Buffer.from(text, "base64");
  if (decoded.byteLength === keyBytes && decoded.toString("base64") === text) return { key: decoded };
  return /^(?:[0-9A-Z]{5}-){10}[0-9A-Z]{5}$/i.test(text) ? { recoveryKey: text } : { passphrase: text };
}

function noMainKey(why: string): ThroughlineError {
  return new ThroughlineError("MAIN_KEY_WRONG", `There is no main key: ${why}.`, {
    outcome: "not-applied",
    details: { reason: "absent" },
    remedy:
      "Give the main key, or the recovery key, where encryption.mainKey says. Without it `throughline sessions` lists addresses, times and sizes.",
  });
}

/** An editor ends a file with an empty line, which is no part of a passphrase; blanks may be one. */
function withoutLineEnd(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === "\n" || text[end - 1] === "\r")) end -= 1;
  return text.slice(0, end);
}
