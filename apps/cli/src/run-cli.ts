import { showsUnicode } from "./cells.ts";
import { CommanderError } from "commander";
import { type AgentContext, type AskPassphrase, createAgentContext, explainCodec } from "@throughline/agent/internal";
import { type Config, loadConfigFile, parseStoreUrl, resolveConfig } from "@throughline/config";
import { configFilePath, maskSecrets, type Setting, settingOf } from "@throughline/config/internal";
import { hasErrorCode, type SessionStore, ThroughlineError } from "@throughline/core";
import { nearestName } from "@throughline/core/internal";
import { commandTable } from "./command-table.ts";
import type { CommandContext, CommandDefinition, CommandInput } from "./command.ts";
import { askLine, askSecret, canAsk, confirm } from "./confirm.ts";
import { reportError, usageError } from "./error-report.ts";
import { columnsOf, type Host } from "./host.ts";
import { isUnborn, type LazyStore, lazyStore, type StorePlace, storePlace } from "./lazy-store.ts";
import { openStore } from "./open-store.ts";
import { createOutput } from "./output.ts";
import type { OutputOptions } from "./output.ts";
import { createProgram } from "./program.ts";
import { asTyped, type GivenOption } from "./printed-commands.ts";
import { helpDocument } from "./help-document.ts";
import { jsonLine, terminalSafeLine } from "./terminal-safe.ts";
import { version } from "./version.ts";

const interruptedExitCode = 130;
const longestTimeoutMs = 2 ** 31 - 1;

interface Request {
  readonly definition: CommandDefinition;
  readonly input: CommandInput;
  readonly globals: CommandInput["options"];
}

/** Returns the exit code and never throws. */
export async function runCli(host: Host): Promise<number> {
  // Before the arguments are parsed, only the raw words tell how to format a failure.
  const words = host.arguments.includes("--") ? host.arguments.slice(0, host.arguments.indexOf("--")) : host.arguments;
  const reporting = {
    isJson: words.includes("--json"),
    isDebug: false,
    command: null as string | null,
    exitCodes: {} as NonNullable<CommandDefinition["exitCodes"]>,
    asTyped: (text: string): string => asTyped(text, host.commandName ?? ownName, []),
    ...(host.reinstallRemedy === undefined ? {} : { reinstallRemedy: host.reinstallRemedy }),
  };
  let definition: CommandDefinition | null = null;
  try {
    const request = parseArguments(host, reporting.isJson);
    if (request === null) return 0;
    definition = request.definition;
    reporting.command = definition.name;
    reporting.exitCodes = definition.exitCodes ?? {};
    if (definition.isService === true) host.onService?.();
    const given = givenOptions(request.globals);
    reporting.asTyped = (text) => asTyped(text, host.commandName ?? ownName, given);
    return await runCommand(host, request, reporting.asTyped, (isDebug) => (reporting.isDebug = isDebug));
  } catch (error) {
    if (host.signal.aborted && definition?.isService !== true) {
      if (definition?.afterInterrupt !== undefined)
        host.stderr.write(reportError(interrupted(definition), { ...reporting, command: null }).text);
      return interruptedExitCode;
    }
    const { exitCode, text } = reportError(error, reporting);
    host.stderr.write(text);
    return exitCode;
  }
}

function interrupted({ name, afterInterrupt }: CommandDefinition): ThroughlineError {
  return new ThroughlineError(
    "ABORTED",
    `${name} was interrupted.`,
    afterInterrupt === undefined ? {} : { remedy: afterInterrupt },
  );
}

/** Returns null when only help or the version was requested. */
function parseArguments(host: Host, isJson: boolean): Request | null {
  const requests: Request[] = [];
  const program = createProgram({
    version,
    commands: commandTable,
    onCommand: (definition, input, globals) => requests.push({ definition, input, globals }),
    // With `--json` a JSON document replaces this text.
    writeOut: (text) => isJson || host.stdout.write(text),
    columns: columnsOf(host.stdout, 100),
  });
  let operands: readonly string[] = [];
  try {
    // Options alone mean the default command; any other word must be an existing command.
    const parsed = program.parseOptions([...host.arguments]);
    operands = parsed.operands;
    const isDefault = operands.length === 0 && parsed.unknown.slice(0, 1).every(isOptionOfChat);
    program.parse(isDefault ? ["chat", ...host.arguments] : [...host.arguments], { from: "user" });
  } catch (error) {
    if ((error as { exitCode?: unknown }).exitCode === 0) {
      const named = operands[0] === "help" ? operands[1] : operands[0];
      const isVersion = (error as { code?: unknown }).code === "commander.version";
      if (isJson)
        host.stdout.write(`${jsonLine(isVersion ? { kind: "version", version } : helpDocument(named ?? null))}\n`);
      return null;
    }
    throw usageOf(error, host.arguments);
  }
  return requests[0] ?? null;
}

function isOptionOfChat(word: string): boolean {
  const [flag = ""] = word.split("=", 1);
  const options = commandTable.find(({ name }) => name === "chat")?.options ?? [];
  return options.some(({ flags }) => flags.split(" ", 1)[0] === flag);
}

function usageOf(error: unknown, words: readonly string[]): unknown {
  if (!(error instanceof CommanderError)) return error;
  const { code } = error;
  const named = words.find((word) => commandTable.some(({ name }) => name === word));
  // For `help nothing`, commander prints its help text as the error message, so the message is rebuilt here.
  const unknown = words[words.indexOf("help") + 1] ?? "";
  const isHelp = code === "commander.help";
  const near = isHelp ? nearestCommand(unknown) : null;
  const message = isHelp
    ? `unknown command '${shortened(unknown)}'${near === null ? "" : ` (Did you mean ${near}?)`}`
    : shortened(error.message.replace(/^error: /, "").replace(/\n\((Did you mean .*)\)$/, " ($1)"));
  const remedy = `See \`throughline ${named === undefined || isHelp ? "" : `${named} `}--help\`.`;
  return usageError(message, { code }, remedy);
}

const mostMessageCharacters = 300;

/** Limits the length, because the message may contain words of the command line. */
function shortened(message: string): string {
  const line = terminalSafeLine(message);
  if (line.length <= mostMessageCharacters) return line;
  // The end of the message states what was expected.
  const tail = line.slice(-100);
  return `${line.slice(0, mostMessageCharacters - tail.length - 1).toWellFormed()}…${tail.toWellFormed()}`;
}

function nearestCommand(word: string): string | null {
  return nearestName(
    word,
    commandTable.filter(({ isHidden }) => isHidden !== true).map(({ name }) => name),
  );
}

/** Collects the options that a printed command must repeat to address the same store and sessions. */
function givenOptions(globals: Request["globals"]): readonly GivenOption[] {
  return ["home", "config", "store", "namespace", "agent"].flatMap((name): readonly GivenOption[] => {
    const value = textOf(globals[name]);
    return value === undefined ? [] : [[`--${name}`, maskSecrets(value)]];
  });
}

const ownName = (): string => "throughline";

async function runCommand(
  host: Host,
  request: Request,
  typed: (text: string) => string,
  setDebug: (isDebug: boolean) => void,
): Promise<number> {
  const { definition, input } = request;
  const config = await configOf(host, request);
  const { settings } = config;
  setDebug(settingOf(settings, "logLevel") === "debug");
  const limit = timeLimitOf(settings);
  const signal = limit.signal === null ? host.signal : AbortSignal.any([host.signal, limit.signal]);
  const output = createOutput(
    host,
    outputOptions(request, settings, { signal, asTyped: typed, isAscii: !showsUnicode(host.environment) }),
  );
  const agent = agentOf(host, request, config);
  const secret = canAsk(host, settingOf(settings, "input") !== false) ? askSecret(host) : null;
  const ask: AskPassphrase | null =
    secret === null ? null : (question) => output.apart(() => secret(question), { forgetsKeys: true });
  const place = storePlace(agent, ask);
  const store = lazyStore(host, place, output);
  const context = contextOf(host, request, { agent, output, signal, store, place, askSecret: ask });
  try {
    const { run } = await definition.load();
    const exitCode = await run(context, input);
    return host.signal.aborted && definition.isService !== true ? interruptedExitCode : exitCode;
  } catch (error) {
    if (limit.signal?.aborted !== true || host.signal.aborted) throw await explained(error, host, place.url);
    throw timedOut(definition, limit.timeoutMs, error);
  } finally {
    // Output from before a failure must appear before the failure.
    await output.flush();
    await store.close();
    await place.parts.close();
  }
}

async function configOf(host: Host, request: Request): Promise<Config> {
  const config = await configWith(host, request, {});
  const { allowEdits, approval } = request.input.options;
  const isAllowing = request.definition.asksModel === true && allowEdits === true && textOf(approval) === undefined;
  // A stated `deny` stays, wherever it was stated.
  if (!isAllowing || settingOf(config.settings, "approval") === "deny") return config;
  return configWith(host, request, { approval: "allow" });
}

function configWith(host: Host, request: Request, more: Readonly<Record<string, string>>): Promise<Config> {
  const { globals, definition, input } = request;
  return resolveConfig({
    userHome: host.userHome,
    environment: host.environment,
    flags: {
      home: textOf(globals["home"]),
      store: textOf(globals["store"]),
      agent: textOf(globals["agent"]),
      namespace: textOf(globals["namespace"]),
      logLevel: textOf(globals["logLevel"]),
      input: globals["input"] === false ? false : undefined,
      timeoutMs: globals["timeout"] as number | undefined,
      ...(definition.asksModel === true ? chatFlags(input.options) : {}),
      ...settingFlags(request),
      ...more,
    },
    readFile: (home) =>
      loadConfigFile({ workingDirectory: host.workingDirectory, home, named: textOf(globals["config"]) }),
  });
}

function agentOf(
  { environment, workingDirectory, userHome }: Host,
  { globals }: Request,
  config: Config,
): AgentContext {
  const home = String(settingOf(config.settings, "home"));
  const configPath = configFilePath({ workingDirectory, home, named: textOf(globals["config"]) });
  return createAgentContext({ config, environment, workingDirectory, userHome, configPath });
}

function timeLimitOf(settings: readonly Setting[]): {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | null;
} {
  const timeoutMs = Number(settingOf(settings, "timeoutMs"));
  // A timer accepts no longer time; it would fire at once.
  const signal = timeoutMs > 0 && timeoutMs <= longestTimeoutMs ? AbortSignal.timeout(timeoutMs) : null;
  return { timeoutMs, signal };
}

function timedOut({ name }: CommandDefinition, timeoutMs: number, cause: unknown): ThroughlineError {
  return new ThroughlineError("ABORTED", `${name} did not end within ${timeoutMs} ms.`, {
    cause,
    details: { timeoutMs },
    remedy: "Allow more time with --timeout; what was acknowledged or imported until then stands.",
  });
}

function outputOptions(
  { globals }: Request,
  settings: readonly Setting[],
  rest: Required<Pick<OutputOptions, "signal" | "asTyped" | "isAscii">>,
): OutputOptions {
  return {
    isJson: globals["json"] === true,
    isQuiet: globals["quiet"] === true,
    logLevel: settingOf(settings, "logLevel") as OutputOptions["logLevel"],
    color: settingOf(settings, "color") as OutputOptions["color"],
    ...rest,
  };
}

interface ContextParts extends Pick<CommandContext, "output" | "signal" | "askSecret"> {
  readonly agent: AgentContext;
  readonly store: LazyStore;
  readonly place: StorePlace;
}

function contextOf(host: Host, request: Request, { agent, store, place, ...parts }: ContextParts): CommandContext {
  const { globals } = request;
  const { output } = parts;
  const { settings } = agent.config;
  let isInherited = false;
  const context: CommandContext = {
    ...agent,
    ...parts,
    host,
    settings,
    tokenPlaces: place.tokenPlaces,
    storeParts: place.parts,
    commands: commandTable,
    openStore: async (purpose, onFinding) => {
      if (!isInherited) {
        isInherited = true;
        await importBefore(request, context, place);
      }
      return store.open(purpose, onFinding);
    },
    canAsk: canAsk(host, settingOf(settings, "input") !== false),
    isYes: globals["yes"] === true,
    askLine: (question) => output.apart(() => askLine(host, question)),
    confirm: (question) => output.apart(() => confirm(host, context, question)),
  };
  return context;
}

/** Adds the owning program of a foreign store, what to do about its encryption, or the remedy for a server error. */
async function explained(error: unknown, host: Host, storeUrl: string): Promise<unknown> {
  if (/^https?:/i.test(storeUrl)) {
    const { explainServerError } = await import("./server/explain-server-error.ts");
    return explainServerError(error, storeUrl, (host.commandName ?? ownName)());
  }
  if (!hasErrorCode(error, "STORE_FOREIGN")) return explainCodec(error);
  // Few commands meet another program's database, so the module loads on demand.
  const { explainForeignStore } = await import("./explain-foreign-store.ts");
  return explainForeignStore(error);
}

/**
 * These commands never import, for any value of `session.inherit.enabled`. `chat` imports by itself and may ask;
 * `import` and `copy` name their source. The others maintain or read a store and must leave it unchanged.
 */
const neverInherit: ReadonlySet<string> = new Set([
  "chat",
  "import",
  "copy",
  "backup",
  "restore-backup",
  "verify",
  "doctor",
  "diagnose",
  "reindex",
  "encryption",
  "__complete",
  "completion",
  "config",
  "demo",
  "__demo-talk",
  "prune",
  "serve",
  "sync",
  "token",
  "ui",
  "mcp",
]);

/** These commands look for sessions. A person whose first command is one of them has none here, but in other programs. */
const firstLooks: ReadonlySet<string> = new Set(["sessions", "search"]);

/** Imports without a question only for users who set `session.inherit.enabled` to true. */
async function importBefore({ definition, input }: Request, context: CommandContext, place: StorePlace): Promise<void> {
  const { host, settings, storeUrl, tokenPlaces, storeParts: parts, output } = context;
  const isWanted = settings.some(({ key, value }) => key === "session.inherit.enabled" && value === true);
  const options = { workingDirectory: host.workingDirectory, create: true, tokenPlaces, parts };
  const open = (): Promise<SessionStore> => openStore(storeUrl, options);
  // Most runs import nothing, so the module loads on demand.
  if (isWanted) {
    if (neverInherit.has(definition.name) || input.options["dryRun"] === true) return;
    // A store in memory would lose the import before the command opens its own store.
    if (parseStoreUrl(storeUrl, host.workingDirectory).scheme === "memory") return;
    const { importInherited } = await import("./inherit/offer-import.ts");
    await importInherited(context, open);
  } else if (
    firstLooks.has(definition.name) &&
    !output.isJson &&
    !context.isYes &&
    isUnborn(place, host.workingDirectory) &&
    context.canAsk
  ) {
    const { offerFirstImport } = await import("./inherit/offer-import.ts");
    await offerFirstImport(context, open);
  }
}

function settingFlags({ definition, input }: Request): Readonly<Record<string, string | number | undefined>> {
  return Object.fromEntries(
    Object.entries(definition.settings ?? {}).map(([option, key]) => {
      return [key, input.options[option] as string | number | undefined];
    }),
  );
}

/** Applies only to commands that call a model, because `context` has a `--model` that is no setting. */
function chatFlags(options: CommandInput["options"]): Readonly<Record<string, string | number | boolean | undefined>> {
  return {
    model: textOf(options["model"]),
    windowTokens: options["window"] as number | undefined,
    workspace: textOf(options["workspace"]),
    tools: textOf(options["tools"]),
    approval: textOf(options["approval"]),
    plain: options["plain"] === true ? true : undefined,
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
