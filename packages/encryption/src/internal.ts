// Functions that the packages of Throughline share. They may change in any release and are not public.
export { beginErasure } from "./erase-sessions.ts";
export { lockedCodec } from "./locked-codec.ts";
