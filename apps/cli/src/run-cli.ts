import { resolve } from "node:path";
import { CommanderError } from "commander";
import { loadConfigFile, parseStoreUrl, resolveConfig } from "@throughline/config";
import type { Setting } from "@throughline/config/internal";
import { hasErrorCode, sessionRef, ThroughlineError } from "@throughline/core";
import { nearestName } from "@throughline/core/internal";
import type { Finding, SessionStore } from "@throughline/core";
import { commandTable } from "./command-table.ts";
import type { CommandContext, CommandDefinition, CommandInput } from "./command.ts";
import { configFilePath, expandStoreUrl, isThere, maskSecrets } from "@throughline/config/internal";
import { confirm } from "./confirm.ts";
import { reportError, usageError } from "./error-report.ts";
import { columnsOf, type Host } from "./host.ts";
import { openStore } from "./open-store.ts";
import { createOutput } from "./output.ts";
import type { Output, OutputOptions } from "./output.ts";
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
    // Global options alone mean the default command; any other word must be an existing command.
    const parsed = program.parseOptions([...host.arguments]);
    operands = parsed.operands;
    const isDefault = operands.length === 0 && parsed.unknown.length === 0;
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
  const { globals } = request;
  const config = await resolveConfig({
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
      ...(request.definition.asksModel === true ? chatFlags(request.input.options) : {}),
      ...settingFlags(request),
    },
    readFile: (home) =>
      loadConfigFile({ workingDirectory: host.workingDirectory, home, named: textOf(globals["config"]) }),
  });
  const { settings } = config;
  const valueOf = (key: string): Setting["value"] => settings.find((setting) => setting.key === key)?.value ?? null;
  const logLevel = valueOf("logLevel") as OutputOptions["logLevel"];
  setDebug(logLevel === "debug");
  const timeoutMs = Number(valueOf("timeoutMs"));
  // A timer accepts no longer time; it would fire at once.
  const timeout = timeoutMs > 0 && timeoutMs <= longestTimeoutMs ? AbortSignal.timeout(timeoutMs) : null;
  const signal = timeout === null ? host.signal : AbortSignal.any([host.signal, timeout]);
  const output = createOutput(host, {
    signal,
    isJson: globals["json"] === true,
    isQuiet: globals["quiet"] === true,
    logLevel,
    color: valueOf("color") as OutputOptions["color"],
    asTyped: typed,
  });
  const isDefaultStore = settings.some(({ key, source }) => key === "store" && source === "default");
  const storeUrl = expandStoreUrl(String(valueOf("store")), host.userHome);
  const tokenPlaces = { environment: host.environment, home: resolve(host.workingDirectory, String(valueOf("home"))) };
  const store = lazyStore(host, { url: storeUrl, isDefault: isDefaultStore, tokenPlaces }, output);
  const scope = {
    namespace: String(valueOf("namespace")),
    agentId: String(valueOf("agent")),
    isAgentGiven: settings.some(({ key, source }) => key === "agent" && source !== "default"),
  };
  // An invalid name is refused before any lookup uses it.
  sessionRef({ key: "scope", namespace: scope.namespace, agentId: scope.agentId });
  let isInherited = false;
  const context: CommandContext = {
    host,
    output,
    config,
    settings,
    storeUrl,
    tokenPlaces,
    configPath: configFilePath({
      workingDirectory: host.workingDirectory,
      home: String(valueOf("home")),
      named: textOf(globals["config"]),
    }),
    scope,
    commands: commandTable,
    signal,
    openStore: async (purpose, onFinding) => {
      if (!isInherited) {
        isInherited = true;
        await inheritBefore(request, context);
      }
      return store.open(purpose, onFinding);
    },
    isYes: globals["yes"] === true,
    confirm: (question) => {
      output.clearProgress();
      const isInputAllowed = valueOf("input") !== false;
      return confirm(host, { isYes: globals["yes"] === true, isInputAllowed }, question);
    },
  };
  try {
    const { run } = await request.definition.load();
    const exitCode = await run(context, request.input);
    return host.signal.aborted && request.definition.isService !== true ? interruptedExitCode : exitCode;
  } catch (error) {
    if (timeout?.aborted !== true || host.signal.aborted) throw await explained(error, host, storeUrl);
    throw new ThroughlineError("ABORTED", `${request.definition.name} did not end within ${timeoutMs} ms.`, {
      cause: error,
      details: { timeoutMs },
      remedy: "Allow more time with --timeout; what was acknowledged or imported until then stands.",
    });
  } finally {
    // Output from before a failure must appear before the failure.
    await output.flush();
    await store.close();
  }
}

/** Adds the owning program of a foreign store, or the remedy for a server error. */
async function explained(error: unknown, host: Host, storeUrl: string): Promise<unknown> {
  if (/^https?:/i.test(storeUrl)) {
    const { explainServerError } = await import("./server/explain-server-error.ts");
    return explainServerError(error, storeUrl, (host.commandName ?? ownName)());
  }
  if (!hasErrorCode(error, "STORE_FOREIGN")) return error;
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
  "__complete",
  "completion",
  "config",
  "demo",
  "__demo-talk",
  "prune",
  "serve",
  "token",
  "mcp",
]);

/** Imports without a question only for users who set `session.inherit.enabled` to true. */
async function inheritBefore({ definition, input }: Request, context: CommandContext): Promise<void> {
  const isWanted = context.settings.some(({ key, value }) => key === "session.inherit.enabled" && value === true);
  const { host, storeUrl, tokenPlaces } = context;
  if (!isWanted || neverInherit.has(definition.name) || input.options["dryRun"] === true) return;
  // A store in memory would lose the import before the command opens its own store.
  if (parseStoreUrl(storeUrl, host.workingDirectory).scheme === "memory") return;
  // Most configurations inherit nothing, so the module loads on demand.
  const { importInherited } = await import("./inherit/offer-import.ts");
  const options = { workingDirectory: host.workingDirectory, create: true, tokenPlaces };
  await importInherited(context, () => openStore(storeUrl, options));
}

function lazyStore(
  host: Host,
  place: { readonly url: string; readonly isDefault: boolean; readonly tokenPlaces: CommandContext["tokenPlaces"] },
  output: Output,
): { readonly open: CommandContext["openStore"]; close(): Promise<void> } {
  const { url, isDefault, tokenPlaces } = place;
  let opened: Promise<SessionStore> | null = null;
  const open = (isWriter: boolean, listener: (finding: Finding) => void): Promise<SessionStore> => {
    const address = parseStoreUrl(url, host.workingDirectory);
    // The user did not name the default store, so a missing one is an empty store and no error.
    const path = address.scheme === "jsonl" ? address.root : address.scheme === "sqlite" ? address.path : null;
    const isUnborn = !isWriter && isDefault && path !== null && !isThere(path);
    if (isUnborn) output.note(`There is no store yet at ${url}; the first import or append makes it.`);
    return openStore(isUnborn ? "memory:" : url, {
      workingDirectory: host.workingDirectory,
      create: isWriter,
      tokenPlaces,
      onEvent: (event) => {
        if (event.name === "finding") listener(event.finding);
      },
    });
  };
  return {
    open: (purpose, listener = (finding) => output.finding(finding)) =>
      (opened ??= open(purpose === "write", listener)),
    close: async () => {
      // A failed open was reported already.
      await (await opened?.catch(() => null))?.close();
    },
  };
}

function settingFlags({ definition, input }: Request): Readonly<Record<string, string | number | undefined>> {
  return Object.fromEntries(
    Object.entries(definition.settings ?? {}).map(([option, key]) => {
      return [key, input.options[option] as string | number | undefined];
    }),
  );
}

/** Applies only to commands that call a model, because `context` has a `--model` that is no setting. */
function chatFlags(options: CommandInput["options"]): Readonly<Record<string, string | number | undefined>> {
  return {
    model: textOf(options["model"]),
    windowTokens: options["window"] as number | undefined,
    workspace: textOf(options["workspace"]),
    tools: textOf(options["tools"]),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
