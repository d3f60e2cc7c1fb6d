// Functions that the packages of Throughline share. They may change in any release and are not public.
export { conversationFolder, createAgentContext, homeOf, workspaceOf } from "./agent-context.ts";
export type { AgentContext } from "./agent-context.ts";
export type { AgentListener } from "./agent-sessions.ts";
export { readAllowedEdits, withdrawAllowedEdits } from "./change-approvals.ts";
export type { AskChange, ChangeAnswer, ChangeQuestion } from "./change-approvals.ts";
export type { ChosenModel } from "./choose-model.ts";
export { readNamedFile } from "./node/named-file.ts";
export type { NamedFile } from "./node/named-file.ts";
export { homeBreakers } from "./home-breakers.ts";
export { writeHomeFile } from "./node/home-file.ts";
export { openConversation } from "./conversation.ts";
export type { Conversation, TurnContent } from "./conversation.ts";
export { findInheritance, openInheritance } from "./inherit-places.ts";
export type { InheritedPlaces } from "./inherit-places.ts";
export {
  isFirstTime,
  isStoreHere,
  lockSync,
  openProgramSync,
  openSync,
  readSyncConsent,
  surveyPrograms,
  writeSyncConsent,
} from "./sync-home.ts";
export type { ProgramSurvey } from "./sync-home.ts";
export { openMeaning } from "./open-meaning.ts";
export { openStore } from "./open-store.ts";
export type { OpenStoreOptions } from "./open-store.ts";
export type { AskPassphrase } from "./main-key.ts";
export { explainCodec } from "./store-encryption.ts";
export { storePartsOf } from "./store-parts.ts";
export type { StoreParts } from "./store-parts.ts";
export { serverSummaries } from "./server-summaries.ts";
export { forkConversation } from "./fork-conversation.ts";
export { continued, startingSession } from "./starting-session.ts";
export type { StartingSession } from "./starting-session.ts";
export { memorySearchTool } from "./workspace-tools.ts";
export { isSourceNamed } from "./inherited-session.ts";
