import { resolve } from "node:path";
import { configProblem, encryptedOf, expandHome, isThere, settingOf } from "@throughline/config/internal";
import { type PayloadCodec, ThroughlineError } from "@throughline/core";
import type { Encryption, MainKey } from "@throughline/encryption";
import { homeOf } from "./agent-context.ts";
import { type AskPassphrase, type KeyContext, mainKeyFile, readMainKey } from "./main-key.ts";

/** Opens the keyring of the configuration once, at the first store that is encrypted. */
export interface StoreEncryption {
  /** Locates the configured keyring; null without one. */
  readonly keyring: string | null;
  /** Reads a main key from where a setting says. */
  readMainKey(from: string): Promise<MainKey>;
  /** Returns the path of the file of a main key. */
  mainKeyFile(name: string): string;
  /** Returns the codec of the store of a URL; null for a plain store. */
  codecFor(url: string): Promise<Encryption | null>;
  /** Returns a codec that decodes nothing, for lists without a main key; null for a plain store. */
  lockedFor(url: string): Promise<PayloadCodec | null>;
  /** Closes the keyring. Close the stores first. */
  close(): Promise<void>;
}

/** @throws {ThroughlineError} CONFIG_INVALID, KEYRING_NOT_FOUND, KEYRING_DAMAGED, KEYRING_IO, MAIN_KEY_WRONG, while a store is opened */
export function storeEncryption(context: KeyContext, ask: AskPassphrase | null): StoreEncryption {
  let opened: Promise<Encryption> | null = null;
  const keyring = keyringPath(context);
  const open = async (): Promise<Encryption> => {
    const { openEncryption } = await import("@throughline/encryption");
    const path = assertKeyring(keyring);
    const mainKey = await readMainKey(context, String(settingOf(context.config.settings, "encryption.mainKey")), ask);
    const search = settingOf(context.config.settings, "encryption.search") as "words" | "off";
    return openEncryption({ keyring: path, mainKey, search });
  };
  return {
    keyring,
    readMainKey: (from) => readMainKey(context, from, ask),
    mainKeyFile: (name) => mainKeyFile(context, name),
    codecFor: async (url) => (isEncrypted(keyring, url) ? (opened ??= open()) : null),
    lockedFor: async (url) => {
      if (!isEncrypted(keyring, url)) return null;
      const path = assertKeyring(keyring);
      return (await import("@throughline/encryption/internal")).lockedCodec(path);
    },
    close: async () => (await opened?.catch(() => null))?.close(),
  };
}

function keyringPath(context: KeyContext): string | null {
  const kept = expandHome(settingOf(context.config.settings, "encryption.keyring"), context.userHome);
  return kept === null ? null : resolve(homeOf(context), kept);
}

/** @throws {ThroughlineError} CONFIG_INVALID when the URL asks for encryption and there is no keyring */
function isEncrypted(keyring: string | null, url: string): boolean {
  if (!/^(?:sqlite|jsonl|postgres|postgresql):/i.test(url)) return false;
  const isConfigured = keyring !== null;
  const isWanted = encryptedOf(url);
  if (isWanted !== true || isConfigured) return isWanted ?? isConfigured;
  const message = "The store is to be encrypted, and encryption.keyring is not set.";
  throw configProblem(null, message, { key: "encryption.keyring" }, "Create one: `throughline encryption init`.");
}

function assertKeyring(path: string | null): string {
  if (path !== null && isThere(path)) return path;
  throw new ThroughlineError("KEYRING_NOT_FOUND", `There is no keyring at ${JSON.stringify(path)}.`, {
    outcome: "not-applied",
    details: { path },
    remedy: "For a new store: `throughline encryption init`. For a store that is encrypted: put its keyring there.",
  });
}

/** Explains why a store does not open with what the configuration says of its encryption. Returns other errors unchanged. */
export function explainCodec(error: unknown): unknown {
  if (!ThroughlineError.isInstance(error) || error.code !== "CODEC_FAILED") return error;
  const { kept, given } = error.details;
  if (typeof kept !== "string") return error;
  const [message, remedy] =
    kept === ""
      ? [
          "The store is not encrypted, and encryption.keyring is set.",
          "Copy it into an encrypted one: `throughline copy --all --all-agents --to-store sqlite:NEW`, with ?encrypted=0 behind the URL of --store.",
        ]
      : typeof given === "string" && given !== ""
        ? ["The store was encrypted with another keyring.", "Set encryption.keyring to the keyring of this store."]
        : ["The store is encrypted.", "Set encryption.keyring and encryption.mainKey, and no ?encrypted=0 in its URL."];
  const { details, cause } = error;
  return new ThroughlineError("CODEC_FAILED", message, { outcome: "not-applied", details, cause, remedy });
}
