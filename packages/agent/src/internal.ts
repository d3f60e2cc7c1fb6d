// Functions that the packages of Throughline share. They may change in any release and are not public.
export { conversationFolder, createAgentContext, homeOf, workspaceOf } from "./agent-context.ts";
export type { AgentContext } from "./agent-context.ts";
export type { AgentListener } from "./agent-sessions.ts";
export type { ChosenModel } from "./choose-model.ts";
export { writeHomeFile } from "./node/home-file.ts";
export { openConversation } from "./conversation.ts";
export type { Conversation } from "./conversation.ts";
export { findInheritance, openInheritance } from "./inherit-places.ts";
export type { InheritedPlaces } from "./inherit-places.ts";
export {
  isFirstTime,
  lockSync,
  openProgramSync,
  openSync,
  readSyncConsent,
  surveyPrograms,
  writeSyncConsent,
} from "./sync-home.ts";
export type { ProgramSurvey } from "./sync-home.ts";
export { openStore } from "./open-store.ts";
export type { OpenStoreOptions } from "./open-store.ts";
export { serverSummaries } from "./server-summaries.ts";
export { forkFields } from "./fork-fields.ts";
export { continued, startingSession } from "./starting-session.ts";
export { memorySearchTool } from "./workspace-tools.ts";
export { isSourceNamed } from "./inherited-session.ts";
