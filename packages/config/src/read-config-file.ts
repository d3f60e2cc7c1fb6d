import type { SettingValue } from "@throughline/core/internal";
import { nearestName } from "@throughline/core/internal";
import { checkValue } from "./check-value.ts";
import type { ConfigNote } from "./config-note.ts";
import { configProblem, shown, unknownField } from "./config-problem.ts";
import { foreignKeys } from "./foreign-keys.ts";
import { foreignEmbedder, foreignMemorySearch, receiverOf } from "./foreign-memory-search.ts";
import { parseConfigText, valueOfNode, type ConfigMember, type ConfigNode } from "./parse-config-text.ts";
import { impliedByAlias, settingAliases } from "./setting-aliases.ts";
import type { SettingDefinition } from "./setting-definition.ts";

// The function is exported from here, so that a program resolves one module less when it starts.
export { checkValue };

/** Holds a configuration file as it was read. */
export interface ConfigFile {
  /** States the absolute path of the file. */
  readonly path: string;
  /** Holds the whole text of the file. */
  readonly text: string;
}

export interface FileValue {
  readonly value: SettingValue;
  readonly line: number;
}

export interface FileValues {
  readonly values: ReadonlyMap<string, FileValue>;
  readonly notes: readonly ConfigNote[];
}

/** @throws {ThroughlineError} CONFIG_INVALID naming the file, the line, the key, the value and what is allowed */
export function readConfigFile(file: ConfigFile, definitions: readonly SettingDefinition[]): FileValues {
  const root = parseConfigText(file.text, file.path);
  if (root.type !== "object") {
    throw configProblem({ path: file.path, line: root.line }, "The configuration is not a JSON object.", {});
  }
  const reader = new FileReader(file, definitions);
  reader.readMembers("", root.members);
  reader.addImplied();
  return { values: reader.values, notes: reader.notes };
}

class FileReader {
  readonly values = new Map<string, FileValue>();
  readonly notes: ConfigNote[] = [];
  readonly #path: string;
  readonly #definitions: ReadonlyMap<string, SettingDefinition>;
  /** The set holds every object above a setting, such as `session` and `session.checkpoint`. */
  readonly #areas: ReadonlySet<string>;

  constructor({ path }: ConfigFile, definitions: readonly SettingDefinition[]) {
    this.#path = path;
    this.#definitions = new Map(definitions.map((definition) => [definition.key, definition]));
    this.#areas = new Set(definitions.flatMap(({ key }) => areasOf(key)));
  }

  readMembers(area: string, members: readonly ConfigMember[]): void {
    for (const member of members) {
      const key = area === "" ? member.key : `${area}.${member.key}`;
      // A dot in a key would reach a setting outside of the object that holds the key.
      if (member.key.includes(".")) throw this.#unknown(key, member);
      this.#readMember(key, member);
    }
  }

  /** Runs after all members, because a value that the file sets overrides an implied value. */
  addImplied(): void {
    for (const { key: alias, kind, line } of this.notes) {
      const implied = kind === "alias" ? impliedByAlias[alias] : undefined;
      if (implied === undefined || this.values.has(implied.key)) continue;
      this.values.set(implied.key, { value: implied.value, line: line ?? 1 });
    }
  }

  #readMember(key: string, member: ConfigMember): void {
    const { node, line } = member;
    const definition = this.#definitions.get(key);
    const isObject = node.type === "object";
    if (definition !== undefined) return this.#take(definition, node, line);
    const meant = Object.hasOwn(settingAliases, key) ? settingAliases[key] : undefined;
    if (meant !== undefined && !(isObject && this.#areas.has(key))) return this.#takeAlias(key, meant, node, line);
    if (key === foreignMemorySearch) return this.#takeMemorySearch(node, line);
    const reason = Object.hasOwn(foreignKeys, key) ? foreignKeys[key] : undefined;
    if (reason !== undefined) return this.#ignore(key, reason, line);
    if (!this.#areas.has(key) && !foreignAreas.has(key)) throw this.#unknown(key, member);
    if (node.type === "scalar" && node.value === null) return undefined;
    if (!isObject) throw this.#wrong(key, valueOfNode(node), "an object", line);
    return this.readMembers(key, node.members);
  }

  #ignore(key: string, reason: string, line: number): void {
    const message = `${key} has no effect: ${reason}.`;
    this.notes.push({ kind: "ignored", key, message, path: this.#path, line });
  }

  #takeAlias(alias: string, key: string, node: ConfigNode, line: number): void {
    const definition = this.#definitions.get(key);
    if (definition === undefined) throw new TypeError(`the alias ${alias} means ${key}, which is no setting`);
    this.#take({ ...definition, key: alias }, node, line, key);
    const message = `${alias} is read as ${key}.`;
    this.notes.push({ kind: "alias", key: alias, meant: key, message, path: this.#path, line });
  }

  #takeMemorySearch(node: ConfigNode, line: number): void {
    const key = "memory.search.embedder";
    const found = foreignEmbedder(valueOfNode(node));
    if ("reason" in found) return this.#ignore(foreignMemorySearch, found.reason, line);
    if (this.values.has(key)) return this.#ignore(foreignMemorySearch, `${key} is set`, line);
    this.values.set(key, { value: found.embedder, line });
    const message = `${foreignMemorySearch} is read as ${key}: the text of sessions is sent to ${receiverOf(found.embedder)}.`;
    this.notes.push({ kind: "alias", key: foreignMemorySearch, meant: key, message, path: this.#path, line });
  }

  #take(definition: SettingDefinition, node: ConfigNode, line: number, key: string = definition.key): void {
    if (!definition.isFileAllowed) throw this.#outside(definition, line);
    const value = valueOfNode(node);
    // Null in the file stands for the default, so the member counts as absent.
    if (value === null) return;
    const problem = checkValue(definition.kind, value);
    if (problem !== null) {
      if (problem.known !== undefined) {
        const at = { path: this.#path, line: lineAt(node, problem.path) ?? line };
        throw unknownField(at, null, { key: `${definition.key}${problem.path}`, known: problem.known });
      }
      const hidden = definition.isSecret === true ? "***" : problem.value;
      throw this.#wrong(
        `${definition.key}${problem.path}`,
        hidden,
        problem.allowed,
        lineAt(node, problem.path) ?? line,
      );
    }
    const before = this.values.get(key);
    if (before !== undefined && shown(before.value) !== shown(value)) {
      const message = `${definition.key} is ${shown(value)}, and the same setting is ${shown(before.value)} in line ${before.line}; keep one.`;
      throw configProblem({ path: this.#path, line }, message, { key, value, other: before.value });
    }
    this.values.set(key, { value, line });
  }

  #wrong(key: string, value: unknown, allowed: string, line: number): Error {
    const message = `${key} is ${shown(value)}; it must be ${allowed}.`;
    return configProblem({ path: this.#path, line }, message, { key, value: value ?? null, allowed });
  }

  #outside({ key, flag, environment }: SettingDefinition, line: number): Error {
    const ways = [flag, ...environment.map(({ name }) => name)].filter((way) => way !== null);
    const message = `${key} cannot be set in the file; use ${ways.join(" or ")}.`;
    return configProblem({ path: this.#path, line }, message, { key });
  }

  #unknown(key: string, { line }: ConfigMember): Error {
    const allowed = [...this.#definitions.values()].filter(({ isFileAllowed }) => isFileAllowed);
    const nearest = nearestSetting(key, [...allowed.map((definition) => definition.key), ...this.#areas]);
    const area = key.slice(0, Math.max(0, key.lastIndexOf(".")));
    const beside = membersOf(area, [...allowed.map((definition) => definition.key), ...this.#areas]);
    const hint = nearest === null ? `the keys there are ${beside.join(", ")}.` : `did you mean ${nearest}?`;
    const message = `${shown(key)} is not a setting; ${hint}`;
    return configProblem({ path: this.#path, line }, message, { key: key.slice(0, 500), nearest });
  }
}

function lineAt(node: ConfigNode, path: string): number | null {
  let at: ConfigNode = node;
  for (const step of path.split(".").slice(1)) {
    if (at.type === "scalar") break;
    const next: ConfigNode | undefined =
      at.type === "list" ? at.items[Number(step)] : at.members.find(({ key }) => key === step)?.node;
    if (next === undefined) break;
    at = next;
  }
  return at === node ? null : at.line;
}

/** These objects hold only keys without effect, so no setting lies in them. */
const foreignAreas: ReadonlySet<string> = new Set([...Object.keys(foreignKeys), foreignMemorySearch].flatMap(areasOf));

/** For `session.checkpoint.model` the areas are `session` and `session.checkpoint`. */
function areasOf(key: string): readonly string[] {
  const steps = key.split(".");
  return steps.slice(1).map((_, index) => steps.slice(0, index + 1).join("."));
}

/** A misspelled key probably means a similar name in the same object, else the same name in another object. */
function nearestSetting(key: string, known: readonly string[]): string | null {
  const cut = key.lastIndexOf(".");
  const [area, name] = [key.slice(0, Math.max(0, cut)), key.slice(cut + 1)];
  const beside = membersOf(area, known);
  const near = nearestName(name, beside.map(lastName));
  if (near !== null) return area === "" ? near : `${area}.${near}`;
  const whole = nearestName(name, known.map(lastName));
  return known.find((candidate) => lastName(candidate) === whole) ?? null;
}

function membersOf(area: string, known: readonly string[]): readonly string[] {
  const prefix = area === "" ? "" : `${area}.`;
  return [...new Set(known)].filter((key) => key.startsWith(prefix) && !key.slice(prefix.length).includes("."));
}

function lastName(key: string): string {
  return key.slice(key.lastIndexOf(".") + 1);
}
