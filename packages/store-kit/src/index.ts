export { createCapabilities } from "./create-capabilities.ts";
export { createHandleLife } from "./handle-life.ts";
export { holdLock } from "./hold-lock.ts";
export { planAppend, prepareAppend } from "./plan-append.ts";
export { planMove, planRedaction, planRemove } from "./plan-move.ts";
export { planSave } from "./plan-save.ts";
export { readPages } from "./read-pages.ts";
export { WatchHub } from "./watch-hub.ts";
