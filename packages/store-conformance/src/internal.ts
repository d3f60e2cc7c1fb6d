// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export { conformanceCases } from "./conformance-cases.ts";
export { startHolder } from "./faults/start-holder.ts";
export { appendLineToModel, appendToModel, lineOf } from "./model/append-to-model.ts";
export {
  forkInModel,
  listInModel,
  moveInModel,
  readInModel,
  redactInModel,
  removeInModel,
  saveInModel,
} from "./model/change-model.ts";
export { createSessionModel, findSession, ModelRefusal, stateOf } from "./model/session-model.ts";
export type { ModelRecord, ModelSession, SessionModel } from "./model/session-model.ts";
