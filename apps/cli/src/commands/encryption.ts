import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { isThere, readBoundedFile, settingOf } from "@throughline/config/internal";
import { ThroughlineError } from "@throughline/core";
import { homeOf } from "@throughline/agent/internal";
import type { ErasureProof, Encryption, MainKey } from "@throughline/encryption";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { namedPath } from "../named-path.ts";
import type { ShredOptions } from "../shred.ts";
import { jsonLine } from "../terminal-safe.ts";

const notValidExitCode = 3;

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const [action = "status", file] = input.arguments;
  if ((action === "check") !== (file !== undefined)) throw usageError("Only `check` takes a file, and it needs one.");
  if (action === "init") return init(context);
  if (!["status", "rotate", "export-key", "shred", "check"].includes(action))
    throw usageError(
      `encryption does status, init, rotate, export-key, shred and check, not ${JSON.stringify(action)}.`,
    );
  const encryption = await context.storeParts.codecFor("sqlite:keyring?encrypted=1");
  if (encryption === null) throw usageError("encryption.keyring is not set.");
  if (action === "shred") return (await import("../shred-agent.ts")).shredAgent(context, input.options as ShredOptions);
  if (action === "check") return check(context, encryption, file ?? "");
  if (action === "export-key") return exportKey(context, encryption);
  if (action === "rotate") {
    const from = input.options["newMainKey"];
    return rotate(context, encryption, typeof from === "string" ? from : "prompt");
  }
  return status(context, encryption);
}

async function status({ output }: CommandContext, encryption: Encryption): Promise<number> {
  const { keyringId, path, scope, keys, destroyedKeys, unfinishedErasures, isRotating } = encryption.status();
  const facts = { path, keyringId, scope, keys, destroyedKeys, unfinishedErasures, isRotating };
  if (output.isJson) await output.object({ kind: "encryption", ...facts });
  else for (const [name, value] of Object.entries(facts)) await output.line(`${name}\t${value}`);
  return 0;
}

/** The recovery key is on stdout, and nowhere else, so that a script can keep it. */
async function init(context: CommandContext): Promise<number> {
  const { output, settings } = context;
  const path = context.storeParts.keyring ?? namedPath({ workingDirectory: homeOf(context) }, "keys.db");
  const from = String(settingOf(settings, "encryption.mainKey"));
  const scope = settingOf(settings, "encryption.scope") as "session" | "agent" | "namespace";
  // Before the passphrase is asked for, and before a key file is made.
  if (isThere(path))
    throw new ThroughlineError("KEYRING_EXISTS", `There is a file at ${JSON.stringify(path)} already.`, {
      outcome: "not-applied",
      details: { path },
    });
  const { createKeyring } = await import("@throughline/encryption");
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const mainKey = await newMainKey(context, from);
  const { recoveryKey } = await createKeyring({ keyring: path, mainKey, scope });
  await showRecoveryKey(context, path, recoveryKey);
  output.note(
    "This is the recovery key, which opens the keyring, too. It is not shown again: print it, and keep it apart from this machine.",
  );
  output.note(`Copy ${path} often, apart from backups of the store: without it nothing reads what it encrypted.`);
  if (settings.some(({ key, source }) => key === "encryption.keyring" && source === "file")) return 0;
  output.note(`Add to the configuration: "encryption": ${jsonLine({ keyring: path, mainKey: from })}`);
  output.note("Each new store is encrypted then. To encrypt one that holds data, copy it into a new one.");
  return 0;
}

async function showRecoveryKey({ output }: CommandContext, path: string, recoveryKey: string): Promise<void> {
  if (output.isJson) await output.object({ kind: "keyring", path, recoveryKey });
  else await output.line(recoveryKey);
}

/** A recovery key cannot be shown again, so a new one takes its place. */
async function exportKey(context: CommandContext, encryption: Encryption): Promise<number> {
  const { output } = context;
  await context.confirm(
    "Replace the recovery key? Older copies of the keyring still open with the old one. If somebody saw it, use `encryption rotate` instead.",
  );
  const { recoveryKey } = await encryption.replaceRecoveryKey();
  await showRecoveryKey(context, encryption.status().path, recoveryKey);
  output.note("This is the new recovery key. It is not shown again: print it, and keep it apart from this machine.");
  return 0;
}

async function rotate(context: CommandContext, encryption: Encryption, from: string): Promise<number> {
  const { output } = context;
  await encryption.finishRotation();
  await context.confirm("Replace the main key and the recovery key? From now on only the new ones open the keyring.");
  const { recoveryKey } = await encryption.rotateMainKey(await newMainKey(context, from));
  await showRecoveryKey(context, encryption.status().path, recoveryKey);
  output.note("This is the new recovery key. It is not shown again. Restart other programs with the new main key.");
  return 0;
}

async function check({ host, output }: CommandContext, encryption: Encryption, file: string): Promise<number> {
  const path = namedPath(host, file);
  const proof = parsedProof(readBoundedFile(path, { what: "proof", mostBytes: 1 << 24 }));
  const isValid = proof !== null && encryption.checkProof(proof);
  const keys = proof?.keyIds.length ?? 0;
  const destroyedAt = proof?.destroyedAt ?? null;
  if (output.isJson) await output.object({ kind: "proof", path, isValid, keys, destroyedAt });
  else await output.line(isValid ? `valid: ${keys} keys were destroyed on ${destroyedAt}` : "not valid");
  return isValid ? 0 : notValidExitCode;
}

function parsedProof(text: string): ErasureProof | null {
  let value: Partial<Record<keyof ErasureProof, unknown>> | null;
  try {
    value = JSON.parse(text) as typeof value;
  } catch {
    return null;
  }
  const { signature, keyIds } = value ?? {};
  return typeof signature === "string" && Array.isArray(keyIds) && keyIds.every((id) => typeof id === "string")
    ? (value as ErasureProof)
    : null;
}

/** Asks twice for a new passphrase, and creates the file of a key that is not there. */
async function newMainKey(context: CommandContext, from: string): Promise<MainKey> {
  if (from.startsWith("file:")) createKeyFile(context.storeParts.mainKeyFile(from.slice("file:".length)));
  const { askSecret: ask } = context;
  const key = await context.storeParts.readMainKey(from);
  if (from !== "prompt" || ask === null || !("passphrase" in key)) return key;
  if ((await ask("The same again: ")) === key.passphrase) return key;
  throw new ThroughlineError("ABORTED", "The passphrases differ; nothing was changed.", { outcome: "not-applied" });
}

const keyBytes = 32;

function createKeyFile(path: string): void {
  if (isThere(path)) return;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, `${randomBytes(keyBytes).toString("base64")}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
