export { planCall, planFrame } from "./plan-call.ts";
export { bodyText, splitRequest } from "./split-request.ts";
export { WireLog } from "./wire-log.ts";
