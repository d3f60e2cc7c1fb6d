import type { S3FileStoreOptions } from "@throughline/file-store";
import type { AgentContext } from "./agent-context.ts";
import type { AskPassphrase } from "./main-key.ts";
import { storeEncryption, type StoreEncryption } from "./store-encryption.ts";
import { storeFilesFor } from "./store-files.ts";

/** Finds what the configuration adds to a store: the bucket of its files, and its encryption. */
export interface StoreParts extends StoreEncryption {
  /** Returns where the files of the store of a URL are; null: in the store. */
  filesFor(url: string): S3FileStoreOptions | null;
}

export function storePartsOf(
  context: Pick<AgentContext, "config" | "environment" | "workingDirectory" | "userHome">,
  ask: AskPassphrase | null,
): StoreParts {
  return { filesFor: storeFilesFor(context), ...storeEncryption(context, ask) };
}
