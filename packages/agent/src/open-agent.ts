import { type Config, loadConfigFile, resolveConfig, sessionSettings } from "@throughline/config";
import { configFilePath, findUserHome, findWorkingDirectory, settingOf } from "@throughline/config/internal";
import type { AgentTool, SessionStore } from "@throughline/core";
import {
  assertKnownOptions,
  causeText,
  mainSessionKey,
  optionKinds,
  type OptionTable,
  portKinds,
} from "@throughline/core/internal";
import type { AgentSessions, WholeTurnEvent } from "@throughline/session/whole-turn";
import { type AgentContext, createAgentContext } from "./agent-context.ts";
import { type AgentListener, agentParts } from "./agent-sessions.ts";
import { createBackgroundWork } from "./background-work.ts";
import { chooseModel, modelChoice } from "./choose-model.ts";
import { findInheritance, openInheritance } from "./inherit-places.ts";
import { processEnvironment } from "./node/process-environment.ts";
import { openStore } from "./open-store.ts";
import { storePartsOf, type StoreParts } from "./store-parts.ts";
import { SessionsByModel } from "./sessions-by-model.ts";

/** Sets where the configuration of an agent comes from, and what a program adds to it. */
export interface AgentOptions {
  /**
   * Holds the configuration, as an object or as the text of a file. Comments and unquoted keys are allowed in the text.
   * @default the content of `configFile`
   */
  readonly config?: string | object | undefined;
  /** Names the configuration file. @default `config.json` in the directory `home`, if the file exists */
  readonly configFile?: string | undefined;
  /**
   * Holds the environment variables: settings, which come before those of the file, and the keys of providers.
   * @default the variables of the process
   */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Sets where relative paths of the configuration begin. @default the working directory of the process */
  readonly workingDirectory?: string | undefined;
  /** Sets the user's own directory, which `~` stands for. @default the directory of the process's user */
  readonly userHome?: string | undefined;
  /** Replaces the store of the configuration. The agent does not close it. */
  readonly store?: SessionStore | undefined;
  /** Adds tools to those of the setting `tools`. @default none */
  readonly tools?: readonly AgentTool[] | undefined;
  /** Receives each event of a turn. @default nothing receives them */
  readonly onEvent?: ((event: WholeTurnEvent) => void) | undefined;
  /**
   * Receives sentences for people about corrected settings, models without a key, inherited sessions and damage of the
   * store. @default nothing receives them
   */
  readonly onNote?: ((message: string) => void) | undefined;
}

/** Sets how an agent ends. */
interface CloseAgentOptions {
  /**
   * Waits at most this long for checkpoints that are due or being written, in milliseconds. A program that ends after
   * one turn never gets a checkpoint otherwise. @default 0
   */
  readonly waitMs?: number | undefined;
}

/** Holds what a configuration describes: a store, and sessions in which a model answers. */
export interface Agent extends AsyncDisposable {
  /** Holds every setting with its source. */
  readonly config: Config;
  /** Holds the sessions of the agent. */
  readonly store: SessionStore;
  /** Opens sessions that flush memory, compact and write checkpoints as configured. */
  readonly sessions: AgentSessions;
  /** Names the session of `session.defaultKey`, else the main session of the agent. */
  readonly defaultKey: string;
  /** Names the model that answers where a session has none of its own: `provider/model`, or `offline` without one. */
  readonly modelName: string;
  /**
   * Closes the sessions, and the store unless the program passed it. A checkpoint that is not written by then is
   * dropped. The method may be called again.
   */
  close(options?: CloseAgentOptions): Promise<void>;
}

const { callback, either, filledText, integer, listOf, object, objectWith, text } = optionKinds;
const agentTable: OptionTable<AgentOptions> = {
  config: either(object, text),
  configFile: filledText,
  environment: object,
  workingDirectory: filledText,
  userHome: filledText,
  store: portKinds.store,
  tools: listOf(objectWith("run")),
  onEvent: callback,
  onNote: callback,
};

const closeTable: OptionTable<CloseAgentOptions> = { waitMs: integer({ min: 0 }) };

/**
 * Opens the agent that a configuration describes. Its sessions run the whole path of a turn with the store, the model,
 * the tools, the summaries, the checkpoints and the policies of the settings. Sessions of another program are imported
 * first if `session.inherit.enabled` is true.
 *
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option or an invalid name of a model; CONFIG_INVALID,
 *   FILE_NOT_FOUND or FILE_UNREADABLE for the configuration; STORE_URL_INVALID and other errors of opening the store;
 *   MODEL_KEY_MISSING
 * @example
 * await using agent = await openAgent({ config: { model: "anthropic/claude-sonnet-5", store: "sqlite:sessions.db" } });
 * const session = await agent.sessions.open("home");
 * const { text } = await session.runTurn("What did we decide about the harbor?");
 */
export async function openAgent(options: AgentOptions = {}): Promise<Agent> {
  assertKnownOptions<AgentOptions>("openAgent", options, agentTable);
  const { onNote = () => {}, tools = [] } = options;
  const work = createBackgroundWork();
  const onEvent = (event: WholeTurnEvent): void => {
    work.see(event);
    options.onEvent?.(event);
  };
  const listener: AgentListener = { onEvent, onNote };
  const context = await readContext(options);
  const choice = modelChoice(context);
  const usual = chooseModel({ ...choice, session: null });
  const storeParts = storePartsOf(context, null);
  const store = options.store ?? (await openOwnStore(context, storeParts, listener));
  const closeStore = async (): Promise<void> => {
    if (options.store === undefined) await store.close();
    await storeParts.close();
  };
  try {
    await inherit(context, store, listener);
    const parts = await agentParts(context, store, { hasTools: true, onNote });
    const sessions = new SessionsByModel({ ...parts, tools: [...parts.tools, ...tools] }, { choice, usual }, listener);
    const close = async (given: CloseAgentOptions = {}): Promise<void> => {
      assertKnownOptions<CloseAgentOptions>("close", given, closeTable);
      await work.settle(store, { waitMs: given.waitMs ?? 0 });
      await sessions.close();
      await parts.meaning?.close();
      await closeStore();
    };
    return {
      config: context.config,
      store,
      sessions,
      defaultKey: parts.settings.defaultKey ?? mainSessionKey(context.scope.agentId),
      modelName: usual.name,
      close,
      [Symbol.asyncDispose]: () => close(),
    };
  } catch (error) {
    await closeStore();
    throw error;
  }
}

async function readContext(options: AgentOptions): Promise<AgentContext> {
  const { config, configFile: named, environment = processEnvironment() } = options;
  const workingDirectory = options.workingDirectory ?? findWorkingDirectory();
  const userHome = options.userHome ?? findUserHome(workingDirectory);
  const file = typeof config === "object" ? JSON.stringify(config, null, 2) : config;
  const resolved = await resolveConfig({
    userHome,
    environment,
    flags: {},
    readFile: (home) =>
      file === undefined ? loadConfigFile({ workingDirectory, home, named }) : { path: "config", text: file },
  });
  const home = String(settingOf(resolved.settings, "home"));
  const configPath = configFilePath({ workingDirectory, home, named });
  return createAgentContext({ config: resolved, environment, workingDirectory, userHome, configPath });
}

function openOwnStore(context: AgentContext, parts: StoreParts, { onNote }: AgentListener): Promise<SessionStore> {
  const { storeUrl, workingDirectory, environment } = context;
  const token = environment["THROUGHLINE_TOKEN"]?.trim();
  return openStore(storeUrl, {
    workingDirectory,
    create: true,
    parts,
    tokenFor: () => Promise.resolve(token === "" ? undefined : token),
    onEvent: (event) => {
      if (event.name === "finding") onNote(`${event.finding.message} ${event.finding.remedy}`);
    },
  });
}

/** The setting is the consent. A location that cannot be imported does not keep the agent from its own sessions. */
async function inherit(context: AgentContext, store: SessionStore, { onNote }: AgentListener): Promise<void> {
  if (sessionSettings(context.config).inherit.enabled !== true) return;
  const found = await findInheritance(context);
  if (found.fresh.length === 0) return;
  let imported = 0;
  try {
    await using sync = openInheritance(context, store, found, { onNote });
    for await (const { state, path, error } of sync.pass()) {
      if (state === "imported") imported += 1;
      if (error !== null) onNote(`${path}: ${error.message}`);
    }
  } catch (error) {
    onNote(`Not every session in ${found.source} was imported: ${causeText(error)}`);
  }
  if (imported > 0) onNote(`Sessions imported from ${found.source}: ${imported}.`);
}
