import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createS3FileStore, type FileStore, type S3FileStoreOptions } from "@throughline/file-store";
import type { Fault } from "./s3-server.ts";

export const credentials = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
};

/** What the server states of itself. */
export interface ServerState {
  readonly objects: readonly { readonly name: string; readonly bytes: number; readonly text: string }[];
  readonly uploads: number;
  /** The requests since the last question. */
  readonly log: readonly string[];
}

export interface S3Process {
  readonly url: string;
  readonly child: ChildProcess;
  fileStore(options?: Partial<S3FileStoreOptions>): FileStore;
  ask(asked?: {
    readonly faults?: readonly Fault[];
    readonly aheadMs?: number;
    readonly damage?: string;
    readonly clear?: boolean;
  }): Promise<ServerState>;
  end(): void;
}

/** Starts the server of the S3 API in a process of its own. */
export async function startS3Process(): Promise<S3Process> {
  const child = fork(join(import.meta.dirname, "s3-server.ts"), { execArgv: [] });
  const [port] = (await once(child, "message")) as [number];
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    child,
    fileStore: (options = {}) => createS3FileStore({ bucket: "bucket", endpoint: url, credentials, ...options }),
    async ask(asked = {}) {
      const response = await fetch(`${url}/-/control`, { method: "POST", body: JSON.stringify(asked) });
      return (await response.json()) as ServerState;
    },
    end: () => void child.kill("SIGKILL"),
  };
}
