import { resolve } from "node:path";
import type { Config } from "@throughline/config";
import { expandStoreUrl, settingOf } from "@throughline/config/internal";
import { realFolder } from "@throughline/core/internal/node";
import { sessionRef } from "@throughline/core";
import type { SessionScope } from "@throughline/core/internal";

/** Holds the configuration of an agent, and what its relative names depend on. */
export interface AgentContext {
  readonly config: Config;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  readonly userHome: string;
  /** The file need not exist. The tools of the model cannot open it. */
  readonly configPath: string;
  readonly storeUrl: string;
  readonly scope: SessionScope;
}

/** @throws {ThroughlineError} AGENT_ID_INVALID, KEY_INVALID for settings that name no agent or namespace */
export function createAgentContext(
  parts: Pick<AgentContext, "config" | "environment" | "workingDirectory" | "userHome" | "configPath">,
): AgentContext {
  const { settings } = parts.config;
  const scope = {
    namespace: String(settingOf(settings, "namespace")),
    agentId: String(settingOf(settings, "agent")),
    isAgentGiven: settings.some(({ key, source }) => key === "agent" && source !== "default"),
  };
  // An invalid name is refused before any lookup uses it.
  sessionRef({ key: "scope", namespace: scope.namespace, agentId: scope.agentId });
  return { ...parts, storeUrl: expandStoreUrl(String(settingOf(settings, "store")), parts.userHome), scope };
}

/** Returns the directory in which Throughline keeps its own files. */
export function homeOf({ config, workingDirectory }: Pick<AgentContext, "config" | "workingDirectory">): string {
  return resolve(workingDirectory, String(settingOf(config.settings, "home")));
}

/** Returns the folder that the tools are confined to: the setting `workspace`, else the working directory. */
export function workspaceOf({ config, workingDirectory }: Pick<AgentContext, "config" | "workingDirectory">): string {
  return resolve(workingDirectory, String(settingOf(config.settings, "workspace") ?? "."));
}

/** Resolves links in the folder of a conversation, because folders are compared by path. */
export function conversationFolder(context: AgentContext): string {
  return realFolder(workspaceOf(context));
}
