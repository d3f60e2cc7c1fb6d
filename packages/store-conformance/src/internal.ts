// What the packages of Throughline share with each other. It may change in any release and is not part of the public interface.
export { conformanceCases } from "./conformance-cases.ts";
export { startHolder } from "./faults/start-holder.ts";
