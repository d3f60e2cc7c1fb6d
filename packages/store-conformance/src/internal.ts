// Functions that the packages of Throughline share. They may change in any release and are not public.
export { conformanceCases } from "./conformance-cases.ts";
export { startHolder } from "./faults/start-holder.ts";
