export { createModel } from "./create-model.ts";
export type { CreateModelOptions } from "./create-model.ts";
export type { NamedModel } from "./parse-model-name.ts";
