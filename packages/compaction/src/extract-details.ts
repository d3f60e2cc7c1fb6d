import { createWorkSlices, pathArgumentNames, writeToolNames } from "@throughline/core/internal";
import type { NeutralBlock, NeutralMessage } from "@throughline/history/internal";
import type { ExtractedDetails } from "./compaction-details.ts";
import { findConstraints, findIdentifiers, findNames, findPaths, findQuoted } from "./detail-patterns.ts";
import { Scoreboard } from "./scoreboard.ts";

export interface ExtractOptions {
  /** Holds the details of the previous compaction, which the new details continue. @default none */
  readonly previous?: ExtractedDetails | null;
  /** Holds the messages that stay. Memory files written in them are listed too. @default none */
  readonly kept?: readonly NeutralMessage[];
  /** Skips memory files written at or before this seq, because an earlier compaction listed them. @default 0 */
  readonly memoryAfterSeq?: number;
  /** Names the folder of the memory files. @default "memory" */
  readonly memoryFolder?: string;
  /**
   * Lists the lowercase names of tools whose path arguments count as modified files. @default the write and edit tools
   * of known agents
   */
  readonly writeTools?: ReadonlySet<string>;
}

const defaultWriteTools: ReadonlySet<string> = new Set(writeToolNames);
const commandKeys: readonly string[] = ["command", "cmd"];

/**
 * Limits each list in the record. The record keeps far more than a summary shows, because the next compaction ranks the
 * items again.
 */
const mostOfEach = 120;
const mostConstraints = 40;
const longestRequest = 400;

/**
 * Extracts files, names, commands, identifiers, quoted values and wishes by rules. No model is asked, so nothing is
 * invented and nothing fails. Tool output is left out: it is mostly text of other people.
 */
export function extractDetails(messages: readonly NeutralMessage[], options: ExtractOptions = {}): ExtractedDetails {
  const boards = new DetailBoards(options);
  for (const [index, message] of messages.entries()) boards.take(message, messages.length - index);
  return boards.finish(messages, options);
}

/** Extracts in slices, because tens of thousands of messages take seconds and would block the process. */
export async function extractDetailsInSlices(
  messages: readonly NeutralMessage[],
  options: ExtractOptions = {},
): Promise<ExtractedDetails> {
  const slices = createWorkSlices();
  const boards = new DetailBoards(options);
  for (const [index, message] of messages.entries()) {
    const pause = slices.next();
    if (pause !== undefined) await pause;
    boards.take(message, messages.length - index);
  }
  return boards.finish(messages, options);
}

class DetailBoards {
  private readonly paths = new Scoreboard(160);
  private readonly symbols = new Scoreboard();
  private readonly commands = new Scoreboard(240);
  private readonly identifiers = new Scoreboard();
  private readonly quoted = new Scoreboard();
  private readonly constraints = new Scoreboard();
  private readonly read = new Set<string>();
  private readonly modified = new Set<string>();
  private readonly memory = new Set<string>();
  private readonly writeTools: ReadonlySet<string>;
  private readonly memoryFolder: string;

  constructor({ writeTools, memoryFolder }: ExtractOptions) {
    this.writeTools = writeTools ?? defaultWriteTools;
    this.memoryFolder = `${memoryFolder ?? "memory"}/`;
  }

  take(message: NeutralMessage, age: number): void {
    if (message.role === "user") this.takeText(text(message.content), 2, age, true);
    else if (message.role === "assistant") {
      this.takeText(text(message.content), 1, age, false);
      for (const block of message.content) {
        if (block.type === "toolCall") this.takeCall(block.name, block.arguments, age);
      }
    } else if (message.role === "bashExecution") this.takeCommand(message.command, age);
  }

  private takeText(body: string, weight: number, age: number, isUser: boolean): void {
    for (const path of new Set(findPaths(body))) this.paths.add(path, weight, age);
    for (const name of new Set(findNames(body))) this.symbols.add(name, weight, age);
    for (const id of new Set(findIdentifiers(body))) this.identifiers.add(id, weight, age);
    for (const value of new Set(findQuoted(body))) if (value.length > 1) this.quoted.add(value, weight, age);
    if (isUser) for (const wish of findConstraints(body)) this.constraints.add(wish, 1, age / 4);
  }

  takeCall(name: string, args: Readonly<Record<string, unknown>>, age: number): void {
    const isWrite = this.writeTools.has(name.toLowerCase());
    for (const path of pathsOf(args)) {
      this.paths.add(path, isWrite ? 5 : 4, age);
      (isWrite ? this.modified : this.read).add(path);
    }
    for (const key of commandKeys) if (typeof args[key] === "string") this.takeCommand(args[key], age);
    for (const value of Object.values(args)) {
      if (typeof value !== "string" || value.length > 20_000) continue;
      for (const found of new Set(findNames(value))) this.symbols.add(found, 0.5, age);
    }
  }

  private takeCommand(command: string, age: number): void {
    const line = command.trim().split("\n")[0] ?? "";
    if (line.length > 1 && line.length <= 200) this.commands.add(line, 1, age);
    for (const path of new Set(findPaths(command))) this.paths.add(path, 0.5, age);
    for (const id of new Set(findIdentifiers(command))) this.identifiers.add(id, 0.5, age);
  }

  finish(
    messages: readonly NeutralMessage[],
    { previous = null, kept = [], memoryAfterSeq = 0 }: ExtractOptions,
  ): ExtractedDetails {
    if (previous !== null) this.addPrevious(previous);
    const ranked = this.paths.ranked(3 * mostOfEach);
    for (const message of [...messages, ...kept]) if (message.seq > memoryAfterSeq) this.takeMemory(message);
    const first = messages.find(({ role }) => role === "user");
    return {
      paths: ranked.slice(0, mostOfEach),
      readFiles: ranked.filter((path) => this.read.has(path) && !this.modified.has(path)).slice(0, mostOfEach),
      modifiedFiles: ranked.filter((path) => this.modified.has(path)).slice(0, mostOfEach),
      symbols: this.symbols.ranked(mostOfEach),
      commands: this.commands.ranked(mostOfEach),
      identifiers: this.identifiers.ranked(mostOfEach),
      quoted: this.quoted.ranked(mostOfEach),
      constraints: this.constraints.ranked(mostConstraints),
      firstRequest:
        previous?.firstRequest ?? (first === undefined ? null : shorten(text(first.content), longestRequest)),
      memoryFiles: [...this.memory],
    };
  }

  private takeMemory(message: NeutralMessage): void {
    if (message.role !== "assistant") return;
    for (const block of message.content) {
      if (block.type !== "toolCall" || !this.writeTools.has(block.name.toLowerCase())) continue;
      for (const path of pathsOf(block.arguments)) {
        // A tool may pass an absolute path. The list holds every path from the memory folder on.
        const at = path.startsWith(this.memoryFolder) ? 0 : path.indexOf(`/${this.memoryFolder}`) + 1;
        const memory = path.slice(at);
        if (memory.startsWith(this.memoryFolder) && memory !== this.memoryFolder) this.memory.add(memory);
      }
    }
  }

  private addPrevious(previous: ExtractedDetails): void {
    this.paths.addRanked(previous.paths);
    for (const path of previous.modifiedFiles) this.modified.add(path);
    for (const path of previous.readFiles) this.read.add(path);
    this.symbols.addRanked(previous.symbols);
    this.commands.addRanked(previous.commands);
    this.identifiers.addRanked(previous.identifiers);
    this.quoted.addRanked(previous.quoted);
    this.constraints.addRanked(previous.constraints);
  }
}

function pathsOf(args: Readonly<Record<string, unknown>>): readonly string[] {
  const paths = pathArgumentNames.map((key) => args[key]);
  return paths.filter((path): path is string => typeof path === "string" && path !== "" && path.length <= 300);
}

function text(content: readonly NeutralBlock[]): string {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
}

export function shorten(body: string, mostChars: number): string {
  const clean = body.trim();
  return clean.length <= mostChars ? clean : `${clean.slice(0, mostChars - 1).trimEnd()}…`.toWellFormed();
}
