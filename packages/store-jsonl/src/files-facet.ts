import type { FilesFacet } from "@throughline/core";
import { createFilesFacet, type FileBackend, type HandleLife } from "@throughline/store-kit/internal";
import type { AgentAddress } from "./agent-folder.ts";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { StoreContext } from "./store-context.ts";

interface FilesOptions {
  readonly context: StoreContext;
  readonly life: HandleLife;
  readonly agentAt: (address: AgentAddress) => AgentSessionFiles;
}

export function createFiles({ context, life, agentAt }: FilesOptions): FilesFacet {
  const { codec, limits, clock, random } = context;
  const backend: FileBackend = {
    addChunk: (upload, number, bytes) => agentAt(upload.scope).stored.addChunk(upload, number, bytes),
    publish: (upload, file) => agentAt(upload.scope).stored.publish(upload, file),
    drop: (upload) => agentAt(upload.scope).stored.drop(upload),
    find: (scope, id) => agentAt(scope).stored.find(scope, id),
    chunk: (upload, number) => agentAt(upload.scope).stored.chunk(upload, number),
    remove: (scope, id) => agentAt(scope).stored.remove(scope, id),
    list: (scope, afterId, limit) => agentAt(scope).stored.list(scope, afterId, limit),
  };
  return createFilesFacet({ backend, coder: codec.coder, life, limits, clock, newId: () => random.uuid() });
}
