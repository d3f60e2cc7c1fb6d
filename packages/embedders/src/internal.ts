// Functions that the packages of Throughline share. They may change in any release and are not public.
export { createEmbedder, embedderKinds } from "./create-embedder.ts";
export type { EmbedderChoice } from "./create-embedder.ts";
