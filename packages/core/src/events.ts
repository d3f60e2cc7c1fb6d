// For whoever tells of events, not for those who listen.
export { tellListener } from "./tell-listener.ts";
